-- Teams: a stream or reader group with an owner, which is a role of the database, is for the members of that role.
-- Row-level security in roles.sql asks these. A login of weir_jobs sees everything, and its plans know nothing of it.

-- Who asks, also within a function that runs with the rights of its owner.
CREATE OR REPLACE FUNCTION weir_internal.asking() RETURNS name
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
COMMENT ON FUNCTION weir_internal.asking() IS 'The role whose rights count for what is asked.';

CREATE OR REPLACE FUNCTION weir_internal.sees_all(login name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN pg_has_role(login, 'weir_jobs', 'USAGE') OR pg_has_role(
    login, (SELECT nspowner FROM pg_namespace WHERE nspname = 'weir_internal'), 'USAGE');
COMMENT ON FUNCTION weir_internal.sees_all(name) IS 'Whether owners do not bind a login.';

-- A login that is gone since, whose name a row may have, is none of them.
CREATE OR REPLACE FUNCTION weir_internal.logins_of_jobs() RETURNS SETOF name
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$ SELECT r.rolname FROM pg_roles r WHERE weir_internal.sees_all(r.rolname) $$;
COMMENT ON FUNCTION weir_internal.logins_of_jobs() IS 'The roles that owners do not bind. What others write into a run of a job tells of no upkeep.';

CREATE OR REPLACE FUNCTION weir_internal.may_act_for(login name, owner text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN owner IS NULL OR weir_internal.sees_all(login) OR EXISTS (
    SELECT FROM pg_roles WHERE rolname = owner AND pg_has_role(login, oid, 'USAGE'));
COMMENT ON FUNCTION weir_internal.may_act_for(name, text) IS 'Whether a login is a member of an owner, or there is none.';

CREATE OR REPLACE FUNCTION weir_internal.own_roles() RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$ SELECT r.rolname::text FROM pg_roles r WHERE pg_has_role(r.oid, 'USAGE') $$;
COMMENT ON FUNCTION weir_internal.own_roles() IS 'The roles that the login is a member of, and itself.';

CREATE OR REPLACE FUNCTION weir_internal.hidden_streams(login name) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT s.stream_id FROM (
        SELECT DISTINCT o.owner FROM weir_internal.stream o WHERE o.owner IS NOT NULL) others
    JOIN weir_internal.stream s USING (owner)
    WHERE NOT weir_internal.may_act_for(login, others.owner);
$$;
COMMENT ON FUNCTION weir_internal.hidden_streams(name) IS 'The streams of owners that a login is no member of.';

-- Whoever sees a stream sees who reads it, because that decides what is kept.
CREATE OR REPLACE FUNCTION weir_internal.hidden_groups(login name) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    WITH hidden AS MATERIALIZED (SELECT weir_internal.hidden_streams(login) AS stream_id)
    SELECT DISTINCT gs.group_id FROM hidden
    JOIN weir_internal.reader_group_stream gs USING (stream_id)
    JOIN weir_internal.reader_group g USING (group_id)
    WHERE NOT (g.owner IS NOT NULL AND weir_internal.may_act_for(login, g.owner)) AND NOT EXISTS (
        SELECT FROM weir_internal.reader_group_stream o
        WHERE o.group_id = gs.group_id AND o.stream_id NOT IN (SELECT stream_id FROM hidden));
$$;
COMMENT ON FUNCTION weir_internal.hidden_groups(name) IS 'The reader groups of others that read nothing but streams that are hidden from a login.';

CREATE OR REPLACE FUNCTION weir_internal.groups_of_others(login name) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT g.group_id FROM weir_internal.reader_group g
    WHERE g.owner IS NOT NULL AND NOT weir_internal.may_act_for(login, g.owner);
$$;
COMMENT ON FUNCTION weir_internal.groups_of_others(name) IS 'The reader groups of owners that a login is no member of.';

CREATE OR REPLACE FUNCTION weir_internal.hidden_stores(login name) RETURNS SETOF bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT a.store_id FROM weir_internal.hidden_streams(login) AS h (stream_id)
    JOIN weir_internal.adjunct_store a USING (stream_id);
$$;
COMMENT ON FUNCTION weir_internal.hidden_stores(name) IS 'The adjunct stores of streams that are hidden from a login.';

CREATE OR REPLACE FUNCTION weir_internal.hidden_names(login name) RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    -- A name that a deleted stream of others had is that of the stream that has it now.
    SELECT s.stream_name FROM weir_internal.hidden_streams(login) AS h (stream_id) JOIN weir_internal.stream s USING (stream_id)
    WHERE s.state <> 'deleted' OR NOT EXISTS (
        SELECT FROM weir_internal.stream o WHERE o.scope = s.scope AND o.name = s.name AND o.state <> 'deleted')
    UNION ALL
    SELECT g.name FROM weir_internal.hidden_groups(login) AS h (group_id) JOIN weir_internal.reader_group g USING (group_id);
$$;
COMMENT ON FUNCTION weir_internal.hidden_names(name) IS 'The names of the streams and reader groups (those of adjunct stores, too) that are hidden from a login. For functions that leave them out: nobody may ask it (roles.sql).';

-- Asked with the rights of the caller, so that row-level security answers.
CREATE OR REPLACE FUNCTION weir_internal.seen_names() RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
    SELECT s.stream_name FROM weir_internal.stream s
    UNION ALL SELECT g.name FROM weir_internal.reader_group g
$$;
COMMENT ON FUNCTION weir_internal.seen_names() IS 'The names of the streams and reader groups (those of adjunct stores, too) that the caller sees.';

CREATE OR REPLACE FUNCTION weir_internal.logins_of_teams() RETURNS SETOF name
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT current_user
    UNION
    SELECT r.rolname FROM (
        SELECT s.owner FROM weir_internal.stream s WHERE s.owner IS NOT NULL
        UNION SELECT g.owner FROM weir_internal.reader_group g WHERE g.owner IS NOT NULL) o
    JOIN pg_roles t ON t.rolname = o.owner AND pg_has_role(t.oid, 'USAGE')
    JOIN pg_roles r ON pg_has_role(r.oid, t.oid, 'USAGE') AND NOT weir_internal.sees_all(r.rolname)
$$;
COMMENT ON FUNCTION weir_internal.logins_of_teams() IS 'The caller, and the roles that are members of an owner of which the caller is one.';

CREATE OR REPLACE FUNCTION weir_internal.hides_nothing(login name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN NOT EXISTS (SELECT weir_internal.hidden_streams(login)) AND NOT EXISTS (SELECT weir_internal.groups_of_others(login));
COMMENT ON FUNCTION weir_internal.hides_nothing(name) IS 'Whether a login sees all streams and reader groups, as where nothing has an owner.';

-- A name within a longer word, as in a path or in quotes, is found if it is bounded by what no name has.
CREATE OR REPLACE FUNCTION weir_internal.tells_hidden(told text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT rtrim(w, '.') FROM regexp_split_to_table(told, '[^a-z0-9_./-]+') w
                   INTERSECT SELECT weir_internal.hidden_names(weir_internal.asking()))
$$;
COMMENT ON FUNCTION weir_internal.tells_hidden(text) IS 'Whether a text names a stream, a reader group or an adjunct store that is hidden from whoever asks.';

-- Of arguments, as forms have them.
CREATE OR REPLACE FUNCTION weir_internal.names_in(arguments jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(DISTINCT n #>> '{}') FROM jsonb_path_query(arguments, '$.keyvalue() ? (
        @.key == "stream" || @.key == "streams" || @.key == "reader_group" || @.key == "new_reader_group"
        || @.key == "adjunct_store" || @.key == "adjunct_stores").value[*]') n
    WHERE n #>> '{}' <> ''
$$;
COMMENT ON FUNCTION weir_internal.names_in(jsonb) IS 'The streams, reader groups and adjunct stores that a run was given; null: none.';

-- A trigger of stream and reader_group.
CREATE OR REPLACE FUNCTION weir_internal.check_owner() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NEW.owner IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = NEW.owner) THEN
        RAISE EXCEPTION 'owner % is no role of the database; let its owner CREATE ROLE it and GRANT it to the logins of the team.', NEW.owner
            USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.owner IS NULL AND NOT weir_internal.sees_all(current_user)
       OR NOT weir_internal.may_act_for(current_user, NEW.owner) THEN
        RAISE EXCEPTION 'login % may not make % the owner: it must be a member of that role, and what belongs to everybody gets an owner by a login of weir_jobs.', current_user, NEW.owner
            USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION weir_internal.check_owner() IS 'Refuses an owner that is no role, or that the login may not set.';

-- Triggers of stream: the rows that a stream rejected belong to whom the stream belongs. The lock lets a change of the
-- owner wait for the new stream, or the new stream for the change.
CREATE OR REPLACE FUNCTION weir_internal.take_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    SELECT s.owner INTO NEW.owner FROM weir_internal.stream s
    WHERE s.scope = NEW.scope AND s.name = split_part(NEW.name, '.', 1)
      AND s.state <> 'deleted'
    FOR SHARE;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION weir_internal.take_owner() IS 'Gives a new stream of rejected rows the owner of its stream.';

CREATE OR REPLACE FUNCTION weir_internal.pass_owner_on() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE weir_internal.stream s SET owner = NEW.owner
    WHERE s.scope = NEW.scope AND s.name = NEW.name || '.rejected' AND s.state <> 'deleted';
    RETURN NULL;
END $$;
COMMENT ON FUNCTION weir_internal.pass_owner_on() IS 'Gives the stream of rejected rows the owner that its stream gets.';
