CREATE OR REPLACE VIEW weir.damage AS
SELECT s.stream_name AS stream, weir_internal.segment_name(d.segment_id) AS segment, d.start_offset, d.events,
       d.path, d.kind, d.what,
       CASE d.kind
           WHEN 'unknown' THEN 'nothing refers to it: move it away, or verify with repair, which makes it garbage'
           WHEN 'garbage' THEN 'no sweep deletes it: look at it, then verify with repair, which lets it go'
           WHEN 'renamed' THEN 'verify with repair, which moves it back, or move it back yourself'
           WHEN 'offsets' THEN 'restore the database from a backup, then recover'
           WHEN 'holes' THEN 'restore the database from a backup, then recover'
           WHEN 'segment' THEN 'readers find these events in the order of another key: report a defect, and append them anew'
           ELSE 'put the file back from a backup or a copy of the warehouse; if there is none, truncate the stream past it'
       END AS advice,
       d.since, d.seen_at
FROM weir_internal.found_damage d
LEFT JOIN weir_internal.stream s ON s.stream_id = d.stream_id
WHERE d.segment_id IS NULL OR EXISTS (
    SELECT FROM weir_internal.data_file f
    WHERE f.stream_id = d.stream_id AND f.segment_id = d.segment_id AND f.start_offset = d.start_offset
      AND f.path = d.path);
COMMENT ON VIEW weir.damage IS 'What weir_verify and weir_stream_cuts have found that is not as recorded, and what to do about it.';
COMMENT ON COLUMN weir.damage.stream IS 'The stream; null for a file that is in no stream''s folder.';
COMMENT ON COLUMN weir.damage.segment IS 'The segment of the events of the file, as number.epoch; null for a file that nobody knows.';
COMMENT ON COLUMN weir.damage.kind IS 'missing; size; unreadable (a page or the footer); end (the footer and what is before it, 64 KiB at least, are others than were written); rows (more or fewer than recorded, or of other ranks); content (the digest differs); bytes (others, in what no reader needs); order (of ranks and clocks); commits (the time index has others); segment (a key belongs to another one); offsets (of the files, in the database); holes (the offsets without a row are not those that erasures declare); unknown (a file that the database does not know); renamed (such a file is what another one was); garbage (a sweep was about to delete it, and it is not what was recorded, or is no garbage).';
COMMENT ON COLUMN weir.damage.advice IS 'What to do.';

COMMENT ON COLUMN weir.damage.start_offset IS 'The offset of the first event of the file.';
COMMENT ON COLUMN weir.damage.path IS 'The file, below the warehouse.';

CREATE OR REPLACE VIEW weir.verified AS
SELECT s.stream_name AS stream, v.begun_at AS looked_at, v.completed_at,
       (SELECT count(*) FROM weir_internal.found_damage d WHERE d.stream_id = s.stream_id) AS damage,
       weir_internal.clock_time(v.proven_clock) AS proven_until
FROM weir_internal.stream s LEFT JOIN weir_internal.verification v USING (stream_id)
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.verified IS 'When the contents of the files of each stream were last compared with what was recorded.';
COMMENT ON COLUMN weir.verified.looked_at IS 'When a file of it was last looked at; null if that never happened.';
COMMENT ON COLUMN weir.verified.completed_at IS 'When all of its files had been looked at, one after the other.';
COMMENT ON COLUMN weir.verified.damage IS 'How many things are not as recorded (weir.damage).';
COMMENT ON COLUMN weir.verified.proven_until IS 'Up to which commit weir_stream_cuts has compared the footers of new files with what was recorded; null if of none.';
