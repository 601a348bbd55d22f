-- What the pages show of streams that annexes know.
CREATE OR REPLACE VIEW weir.documents AS
SELECT NULL::text AS stream, NULL::text AS title, NULL::text AS request, NULL::text AS requested_by, NULL::text AS reason,
       NULL::timestamptz AS asked_at, NULL::bigint AS events, NULL::bigint AS streams, NULL::text AS state,
       NULL::text[] AS waits_for, NULL::timestamptz AS made_at, NULL::text AS file, NULL::jsonb AS document WHERE false
-- each annex: documents.sql
;
COMMENT ON VIEW weir.documents IS 'What people asked to be done to the events of a stream and have a document about: the pages show it, and give the document as a file.';
COMMENT ON COLUMN weir.documents.stream IS 'The stream that was named.';
COMMENT ON COLUMN weir.documents.title IS 'What was done, as the heading of a part of the page.';
COMMENT ON COLUMN weir.documents.request IS 'The run that does it: DAG, run and task.';
COMMENT ON COLUMN weir.documents.requested_by IS 'Who asked for it.';
COMMENT ON COLUMN weir.documents.reason IS 'Why, as they say.';
COMMENT ON COLUMN weir.documents.asked_at IS 'When the run began.';
COMMENT ON COLUMN weir.documents.events IS 'Of how many events, of all streams.';
COMMENT ON COLUMN weir.documents.streams IS 'Of how many streams.';
COMMENT ON COLUMN weir.documents.state IS 'The state of the document.';
COMMENT ON COLUMN weir.documents.waits_for IS 'What it waits for; null once it is there.';
COMMENT ON COLUMN weir.documents.made_at IS 'When it was made; null if it is not.';
COMMENT ON COLUMN weir.documents.file IS 'The name of its file.';
COMMENT ON COLUMN weir.documents.document IS 'The document as JSON.';
