-- Whoever has the private key can sign a certificate of what never happened (decision 91).
REVOKE ALL ON weir_internal.signing_key FROM weir_jobs, weir_team, weir_reader;
GRANT SELECT, INSERT ON weir_internal.signing_key TO weir_jobs;
GRANT SELECT (key_number, public_key, made_at) ON weir_internal.signing_key TO weir_team, weir_reader;
-- Evidence of what was erased is added by functions, which look at the ledger, and changed by nobody (decision 91).
REVOKE INSERT, UPDATE, DELETE ON weir_internal.erasure, weir_internal.erasure_request FROM weir_jobs, weir_team;
REVOKE EXECUTE ON FUNCTION weir_internal.sign_erasure FROM weir_team;
REVOKE EXECUTE ON FUNCTION weir_internal.add_erasure FROM weir_jobs, weir_team;
-- It runs with the rights of weir_publisher, as what publishes rows does (the end of the core's roles.sql).
REVOKE EXECUTE ON FUNCTION weir_internal.erase_as_publisher FROM weir_jobs, weir_team, weir_reader;
GRANT USAGE, CREATE ON SCHEMA weir_internal TO weir_publisher;
ALTER FUNCTION weir_internal.erase_as_publisher OWNER TO weir_publisher;
DO $$
DECLARE
    owner CONSTANT name := current_user;
BEGIN
    SET LOCAL ROLE weir_publisher;
    EXECUTE format('GRANT EXECUTE ON FUNCTION weir_internal.erase_as_publisher TO %I', owner);
    RESET ROLE;
END $$;
REVOKE USAGE, CREATE ON SCHEMA weir_internal FROM weir_publisher;
