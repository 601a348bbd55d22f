           OR w.kind IN ('hours', 'days') AND (in_late OR weir_internal.partition_begin(w.kind, in_until)
               IS DISTINCT FROM weir_internal.partition_begin(w.kind, s.complete_until))
