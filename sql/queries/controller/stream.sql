-- The columns of a stream.

-- fragment: settings
-- The fields of `weir.model.stream_configuration.Configuration`.
routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner

-- fragment: stream
stream_id, scope, name, state, current_epoch, next_segment_number, schema_version, last_clock,
    head, {settings}
