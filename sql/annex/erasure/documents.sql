UNION ALL
SELECT c.stream, 'What was erased', c.request, c.requested_by, c.reason, c.asked_at, c.events, c.streams, c.state,
       c.waits_for, c.certified_at, 'certificate.json', c.certificate
FROM weir.certificates c
