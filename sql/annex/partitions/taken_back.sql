    RETURN QUERY SELECT a.* FROM weir_internal.take_back_announced(s.stream_id) a;
