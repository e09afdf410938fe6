-- PostgreSQL database dump

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

-- Name: drop_usage_partitions(date); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.drop_usage_partitions(before date) RETURNS integer
    LANGUAGE plpgsql
    SET lock_timeout TO '1s'
    AS $_$
declare
    old_partition name;
    dropped integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('turnpike.make_usage_partitions'));
    for old_partition in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'usage_record'::regclass and c.relname ~ '^usage_record_[0-9]{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < before
        order by c.relname
    loop
        execute format('drop table %I', old_partition);
        dropped := dropped + 1;
    end loop;
    delete from usage_record_default where ctid = any (array(
        select ctid from usage_record_default where day < before limit 50000));
    return dropped;
end
$_$;

-- Name: FUNCTION drop_usage_partitions(before date); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.drop_usage_partitions(before date) IS 'Forgets the records of days before a day, and says how many partitions went. Roll-ups, gaps and cursors stay.';

-- Name: keep_limit_shape(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.keep_limit_shape() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    shape limit_shape;
    fixed text;
begin
    insert into limit_shape (limit_id, subject, subject_id, unit, limit_window, time_zone)
    values (new.limit_id, new.subject, new.subject_id, new.unit, new.limit_window, new.time_zone)
    on conflict on constraint limit_shape_pkey do nothing;
    select * into shape from limit_shape where limit_id = new.limit_id;
    fixed := case
        when shape.subject <> new.subject then 'subject'
        when shape.subject_id <> new.subject_id then 'subject_id'
        when shape.unit <> new.unit then 'unit'
        when shape.limit_window <> new.limit_window then 'window'
        when shape.time_zone <> new.time_zone then 'time_zone'
    end;
    if fixed is not null then
        raise exception 'limit %: % is fixed', new.limit_id, fixed
            using errcode = 'check_violation', constraint = 'limit_shape_' || fixed;
    end if;
    return null;
end
$$;

-- Name: FUNCTION keep_limit_shape(); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.keep_limit_shape() IS 'Refuses to change what the buckets of a limit count.';

-- Name: make_usage_partitions(date, integer); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.make_usage_partitions(first_day date, days integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    this_day date;
begin
    perform pg_advisory_xact_lock(hashtext('turnpike.make_usage_partitions'));
    for this_day in select first_day + i from generate_series(0, days - 1) as i loop
        if to_regclass(format('usage_record_%s', to_char(this_day, 'YYYYMMDD'))) is null
            and not exists (select from usage_record_default where day = this_day) then
            execute format(
                'create table %I partition of usage_record for values from (%L) to (%L)',
                format('usage_record_%s', to_char(this_day, 'YYYYMMDD')), this_day, this_day + 1);
        end if;
    end loop;
end
$$;

-- Name: FUNCTION make_usage_partitions(first_day date, days integer); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.make_usage_partitions(first_day date, days integer) IS 'Makes the partitions of usage_record for some days, where they are missing.';

-- Name: note_edit(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.note_edit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    edited_id text := 'default';
begin
    if tg_argv[1] <> '' then
        edited_id := case tg_op when 'DELETE' then to_jsonb(old) else to_jsonb(new) end ->> tg_argv[1];
    end if;
    insert into pending_edit (kind, id) values (tg_argv[0], edited_id)
    on conflict on constraint pending_edit_pkey
    do update set noted_at = turnpike_now(), tried_version = null, fault = null;
    return null;
end
$$;

-- Name: FUNCTION note_edit(); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.note_edit() IS 'Notes in pending_edit that a resource was edited.';

-- Name: saturating_add(bigint, bigint); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.saturating_add(a bigint, b bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (LEAST(((a)::numeric + (b)::numeric), ('9223372036854775807'::bigint)::numeric))::bigint;

-- Name: FUNCTION saturating_add(a bigint, b bigint); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.saturating_add(a bigint, b bigint) IS 'Sum of two numbers that are not negative, at most 2^63 - 1.';

-- Name: stamp_edit(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.stamp_edit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.updated_at := turnpike_now();
    new.updated_by := coalesce(nullif(current_setting('turnpike.transaction', true), ''), 'sql');
    return new;
end
$$;

-- Name: FUNCTION stamp_edit(); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.stamp_edit() IS 'Sets updated_at, and updated_by to the name of the transaction.';

-- Name: turnpike_now(); Type: FUNCTION; Schema: public; Owner: -

CREATE FUNCTION public.turnpike_now() RETURNS timestamp with time zone
    LANGUAGE sql PARALLEL SAFE
    RETURN (clock_timestamp() + (COALESCE(NULLIF(current_setting('turnpike.clock_offset'::text, true), ''::text), '0'::text))::interval);

-- Name: FUNCTION turnpike_now(); Type: COMMENT; Schema: public; Owner: -

COMMENT ON FUNCTION public.turnpike_now() IS 'The time of everything that is stored; turnpike.clock_offset moves it in tests.';

SET default_tablespace = '';

SET default_table_access_method = heap;

-- Name: audit_entry; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.audit_entry (
    audit_entry_id bigint NOT NULL,
    occurred_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    actor text NOT NULL,
    method text NOT NULL,
    resource text NOT NULL,
    config_version bigint NOT NULL,
    state text DEFAULT ''::text NOT NULL
);

-- Name: TABLE audit_entry; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.audit_entry IS 'What was changed, written in the transaction that changed it. Rows are never changed.';

-- Name: COLUMN audit_entry.audit_entry_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.audit_entry_id IS 'In commit order: written under the lock on config_state.';

-- Name: COLUMN audit_entry.occurred_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.occurred_at IS 'When.';

-- Name: COLUMN audit_entry.actor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.actor IS 'Who, for example admin-token; publisher: rows edited past the API were published.';

-- Name: COLUMN audit_entry.method; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.method IS 'The RPC, for example CreateVirtualKey.';

-- Name: COLUMN audit_entry.resource; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.resource IS 'Resource name.';

-- Name: COLUMN audit_entry.config_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.config_version IS 'The config version that holds the change.';

-- Name: COLUMN audit_entry.state; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.audit_entry.state IS 'The resource after the change as JSON, without secrets; empty after a deletion.';

-- Name: audit_entry_audit_entry_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.audit_entry ALTER COLUMN audit_entry_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_entry_audit_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: config_state; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.config_state (
    one boolean DEFAULT true NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    nonce text DEFAULT (gen_random_uuid())::text NOT NULL,
    pruned_version bigint DEFAULT 0 NOT NULL,
    CONSTRAINT config_state_one CHECK (one),
    CONSTRAINT config_state_version_order CHECK (((0 <= pruned_version) AND (pruned_version <= version)))
);

-- Name: TABLE config_state; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.config_state IS 'One row. Every mutation locks it first, so the order of versions is the order of commits.';

-- Name: COLUMN config_state.one; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.config_state.one IS 'Always true: there is one row.';

-- Name: COLUMN config_state.version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.config_state.version IS 'The newest published config version.';

-- Name: COLUMN config_state.nonce; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.config_state.nonce IS 'Names the lineage of this database; versions of another are not comparable.';

-- Name: COLUMN config_state.pruned_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.config_state.pruned_version IS 'Removals up to and including this version are forgotten.';

-- Name: credential; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.credential (
    credential_id text NOT NULL COLLATE pg_catalog."C",
    provider_id text NOT NULL COLLATE pg_catalog."C",
    team_id text COLLATE pg_catalog."C",
    virtual_key_id text COLLATE pg_catalog."C",
    weight integer DEFAULT 1 NOT NULL,
    envelope bytea,
    file text,
    environment_variable text,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT credential_one_owner CHECK (((team_id IS NULL) OR (virtual_key_id IS NULL))),
    CONSTRAINT credential_one_source CHECK ((num_nonnulls(envelope, file, environment_variable) = 1)),
    CONSTRAINT credential_weight_range CHECK (((weight >= 1) AND (weight <= 1000)))
);

-- Name: TABLE credential; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.credential IS 'A provider''s secret: sealed here, or where to read it.';

-- Name: COLUMN credential.credential_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.credential_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN credential.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.provider_id IS 'The provider it opens; fixed at creation.';

-- Name: COLUMN credential.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.team_id IS 'Only for this team; null: see virtual_key_id.';

-- Name: COLUMN credential.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.virtual_key_id IS 'Only for this key; with team_id null too: for everyone.';

-- Name: COLUMN credential.weight; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.weight IS 'Share among credentials of the same kind.';

-- Name: COLUMN credential.envelope; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.envelope IS 'The secret sealed with AES-256-GCM: version byte, key id (4), nonce (12), ciphertext and tag. Bound to credential and provider.';

-- Name: COLUMN credential.file; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.file IS 'Path below the control plane''s secrets directory, read at each publish.';

-- Name: COLUMN credential.environment_variable; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.environment_variable IS 'Variable of the control plane, read at each publish.';

-- Name: COLUMN credential.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.created_at IS 'When it was created.';

-- Name: COLUMN credential.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.updated_at IS 'When it was last edited.';

-- Name: COLUMN credential.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.credential.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: key_secret; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.key_secret (
    virtual_key_id text NOT NULL COLLATE pg_catalog."C",
    "position" smallint NOT NULL,
    sha256 bytea NOT NULL,
    hint text NOT NULL,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    CONSTRAINT key_secret_position_range CHECK ((("position" >= 1) AND ("position" <= 3))),
    CONSTRAINT key_secret_sha256_length CHECK ((octet_length(sha256) = 32))
);

-- Name: TABLE key_secret; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.key_secret IS 'The secrets accepted for a key: hashes only.';

-- Name: COLUMN key_secret.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret.virtual_key_id IS 'The key it opens.';

-- Name: COLUMN key_secret."position"; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret."position" IS '1 to 3.';

-- Name: COLUMN key_secret.sha256; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret.sha256 IS 'SHA-256 over the whole secret as the client sends it.';

-- Name: COLUMN key_secret.hint; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret.hint IS 'First characters of the secret, enough to recognise it.';

-- Name: COLUMN key_secret.expires_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret.expires_at IS 'After this moment the secret is refused; null: with its key.';

-- Name: COLUMN key_secret.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.key_secret.created_at IS 'When it was made or imported.';

-- Name: lease_clock; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.lease_clock (
    one boolean DEFAULT true NOT NULL,
    ticked_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    ticks bigint DEFAULT 0 NOT NULL,
    fence_not_before timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    CONSTRAINT lease_clock_one CHECK (one)
)
WITH (fillfactor='50');

-- Name: TABLE lease_clock; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.lease_clock IS 'One row: that beats can be stored. Every replica moves it about once a second.';

-- Name: COLUMN lease_clock.one; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.lease_clock.one IS 'Always true: there is one row.';

-- Name: COLUMN lease_clock.ticked_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.lease_clock.ticked_at IS 'When it was last moved.';

-- Name: COLUMN lease_clock.ticks; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.lease_clock.ticks IS 'Rises by one each time; a replica that finds less than it has written is on an older database.';

-- Name: COLUMN lease_clock.fence_not_before; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.lease_clock.fence_not_before IS 'After a time in which nothing could be stored nobody is fenced before this.';

-- Name: limit_adjustment; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_adjustment (
    limit_adjustment_id bigint NOT NULL,
    bucket_id bigint NOT NULL,
    delta bigint NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL,
    made_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL
);

-- Name: TABLE limit_adjustment; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_adjustment IS 'Corrections of what is settled. Rows are never changed.';

-- Name: COLUMN limit_adjustment.limit_adjustment_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.limit_adjustment_id IS 'In the order in which they were made.';

-- Name: COLUMN limit_adjustment.bucket_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.bucket_id IS 'The bucket.';

-- Name: COLUMN limit_adjustment.delta; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.delta IS 'Added to settled; negative gives room back.';

-- Name: COLUMN limit_adjustment.reason; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.reason IS 'Why.';

-- Name: COLUMN limit_adjustment.actor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.actor IS 'Who.';

-- Name: COLUMN limit_adjustment.made_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_adjustment.made_at IS 'When.';

-- Name: limit_adjustment_limit_adjustment_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.limit_adjustment ALTER COLUMN limit_adjustment_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.limit_adjustment_limit_adjustment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: limit_bucket; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_bucket (
    bucket_id bigint NOT NULL,
    limit_id text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    window_start timestamp with time zone NOT NULL,
    window_end timestamp with time zone,
    amount bigint NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    suspended bigint DEFAULT 0 NOT NULL,
    CONSTRAINT limit_bucket_parts_range CHECK (((amount >= 0) AND (held >= 0) AND (suspended >= 0)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.01');

-- Name: TABLE limit_bucket; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_bucket IS 'One limit''s account for one subject in one window, in the limit''s unit. Credit is granted while settled + held + suspended <= amount.';

-- Name: COLUMN limit_bucket.bucket_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.bucket_id IS 'The order in which buckets are locked.';

-- Name: COLUMN limit_bucket.limit_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.limit_id IS 'As in limit_definition; buckets outlive it.';

-- Name: COLUMN limit_bucket.subject; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.subject IS 'Empty for everything; else team or key id, or team/user.';

-- Name: COLUMN limit_bucket.window_start; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.window_start IS '1970 for rates, in-flight and lifetime.';

-- Name: COLUMN limit_bucket.window_end; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.window_end IS 'Null: never ends.';

-- Name: COLUMN limit_bucket.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.amount IS 'Of the limit as last published.';

-- Name: COLUMN limit_bucket.settled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.settled IS 'Charged by records, moved by corrections.';

-- Name: COLUMN limit_bucket.held; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.held IS 'Sum of what is outstanding over leases that are not lost.';

-- Name: COLUMN limit_bucket.suspended; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_bucket.suspended IS 'Sum of what is outstanding over lost leases.';

-- Name: limit_bucket_bucket_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.limit_bucket ALTER COLUMN bucket_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.limit_bucket_bucket_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: limit_definition; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_definition (
    limit_id text NOT NULL COLLATE pg_catalog."C",
    display_name text DEFAULT ''::text NOT NULL,
    subject text NOT NULL,
    subject_id text DEFAULT ''::text NOT NULL,
    models text[] DEFAULT '{}'::text[] NOT NULL,
    providers text[] DEFAULT '{}'::text[] NOT NULL,
    rules text[] DEFAULT '{}'::text[] NOT NULL,
    unit text NOT NULL,
    amount bigint NOT NULL,
    limit_window text NOT NULL,
    time_zone text DEFAULT ''::text NOT NULL,
    enforcement text,
    on_exceed text,
    on_unavailable text,
    outage_allowance bigint DEFAULT 0 NOT NULL,
    on_unbounded text,
    burst bigint DEFAULT 0 NOT NULL,
    clamp boolean DEFAULT false NOT NULL,
    thresholds integer[] DEFAULT '{}'::integer[] NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT limit_definition_amounts_range CHECK (((amount >= 0) AND (outage_allowance >= 0) AND (burst >= 0)))
);

-- Name: TABLE limit_definition; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_definition IS 'A bound on what a subject may use; see turnpike.config.v1.Limit.';

-- Name: COLUMN limit_definition.limit_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.limit_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN limit_definition.display_name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.display_name IS 'For people.';

-- Name: COLUMN limit_definition.subject; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.subject IS 'everything, team, key or end_user; fixed.';

-- Name: COLUMN limit_definition.subject_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.subject_id IS 'Team or key id, or team/user; empty: each one has a bucket of its own; fixed.';

-- Name: COLUMN limit_definition.models; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.models IS 'Public model names or prefix/*; empty: all.';

-- Name: COLUMN limit_definition.providers; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.providers IS 'Provider ids; empty: all.';

-- Name: COLUMN limit_definition.rules; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.rules IS 'Rule names; empty: all, and requests that no rule matched.';

-- Name: COLUMN limit_definition.unit; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.unit IS 'requests, in_flight, tokens, input_tokens, uncached_input_tokens, output_tokens or money; fixed.';

-- Name: COLUMN limit_definition.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.amount IS 'In the unit, money in nano-USD; at most 2^53.';

-- Name: COLUMN limit_definition.limit_window; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.limit_window IS 'none, second, minute, hour, day, week, month or lifetime; fixed.';

-- Name: COLUMN limit_definition.time_zone; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.time_zone IS 'IANA name; empty: UTC; fixed.';

-- Name: COLUMN limit_definition.enforcement; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.enforcement IS 'strict, guarded or estimated; null: the default of the unit.';

-- Name: COLUMN limit_definition.on_exceed; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.on_exceed IS 'reject, skip_target or warn; null: reject.';

-- Name: COLUMN limit_definition.on_unavailable; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.on_unavailable IS 'reject or allow; null: reject.';

-- Name: COLUMN limit_definition.outage_allowance; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.outage_allowance IS 'In the unit, per node and outage.';

-- Name: COLUMN limit_definition.on_unbounded; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.on_unbounded IS 'reject or estimate; null: reject.';

-- Name: COLUMN limit_definition.burst; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.burst IS 'Of rates; 0: a quarter of the amount, at least 1.';

-- Name: COLUMN limit_definition.clamp; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.clamp IS 'max_tokens may be lowered to what is left.';

-- Name: COLUMN limit_definition.thresholds; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.thresholds IS 'Percent of the amount at which an event is raised, rising.';

-- Name: COLUMN limit_definition.disabled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.disabled IS 'A disabled limit holds nobody.';

-- Name: COLUMN limit_definition.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.created_at IS 'When it was created.';

-- Name: COLUMN limit_definition.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.updated_at IS 'When it was last edited.';

-- Name: COLUMN limit_definition.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_definition.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: limit_event; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_event (
    limit_event_id uuid DEFAULT gen_random_uuid() NOT NULL,
    bucket_id bigint NOT NULL,
    threshold integer NOT NULL,
    settled bigint NOT NULL,
    amount bigint NOT NULL,
    raised_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    try_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    delivered_at timestamp with time zone,
    failure text DEFAULT ''::text NOT NULL
);

-- Name: TABLE limit_event; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_event IS 'Buckets that have passed a threshold of their limit, each told once.';

-- Name: COLUMN limit_event.limit_event_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.limit_event_id IS 'Names the event to whoever is told; the same at each try.';

-- Name: COLUMN limit_event.bucket_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.bucket_id IS 'The bucket.';

-- Name: COLUMN limit_event.threshold; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.threshold IS 'Percent of the amount.';

-- Name: COLUMN limit_event.settled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.settled IS 'Of the bucket, when it was seen to have passed.';

-- Name: COLUMN limit_event.amount; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.amount IS 'Of the bucket, when it was seen to have passed.';

-- Name: COLUMN limit_event.raised_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.raised_at IS 'When it was seen to have passed.';

-- Name: COLUMN limit_event.tries; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.tries IS 'How often a delivery was begun.';

-- Name: COLUMN limit_event.try_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.try_at IS 'When the next one is due, unless it is delivered.';

-- Name: COLUMN limit_event.delivered_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.delivered_at IS 'When its receiver took it; null: not yet, or nobody is to be told.';

-- Name: COLUMN limit_event.failure; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_event.failure IS 'Why the last try that failed did, at most 200 characters; empty: none failed.';

-- Name: limit_lease; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_lease (
    bucket_id bigint NOT NULL,
    boot_id uuid NOT NULL,
    epoch bigint NOT NULL,
    granted bigint DEFAULT 0 NOT NULL,
    consumed bigint DEFAULT 0 NOT NULL,
    returned bigint DEFAULT 0 NOT NULL,
    unaccounted bigint DEFAULT 0 NOT NULL,
    lost_at timestamp with time zone,
    wanted_at timestamp with time zone,
    CONSTRAINT limit_lease_totals_range CHECK (((granted >= 0) AND (consumed >= 0) AND (returned >= 0) AND (unaccounted >= 0)))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.01');

-- Name: TABLE limit_lease; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_lease IS 'What one process holds of a bucket in one epoch. Totals only rise; outstanding is greatest(0, granted - consumed - returned).';

-- Name: COLUMN limit_lease.bucket_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.bucket_id IS 'The bucket.';

-- Name: COLUMN limit_lease.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.boot_id IS 'The process. Not of node_boot only: late records may name one that is forgotten.';

-- Name: COLUMN limit_lease.epoch; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.epoch IS 'Its epoch; a fenced process comes back with another, and this row keeps its debts.';

-- Name: COLUMN limit_lease.granted; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.granted IS 'Lent.';

-- Name: COLUMN limit_lease.consumed; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.consumed IS 'Charged by records.';

-- Name: COLUMN limit_lease.returned; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.returned IS 'Given back, or freed.';

-- Name: COLUMN limit_lease.unaccounted; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.unaccounted IS 'Lent to a lost process and so far in no record, once it is written down as such.';

-- Name: COLUMN limit_lease.lost_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.lost_at IS 'When its process was fenced; null: it was not.';

-- Name: COLUMN limit_lease.wanted_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_lease.wanted_at IS 'When more was last asked for; null: never.';

-- Name: limit_recall; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_recall (
    bucket_id bigint NOT NULL,
    keep bigint NOT NULL,
    marked_at timestamp with time zone NOT NULL
);

-- Name: TABLE limit_recall; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_recall IS 'Buckets whose idle credit is wanted back. Few, and gone after a minute.';

-- Name: COLUMN limit_recall.bucket_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_recall.bucket_id IS 'The bucket.';

-- Name: COLUMN limit_recall.keep; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_recall.keep IS 'Idle credit up to this may be kept by each holder.';

-- Name: COLUMN limit_recall.marked_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_recall.marked_at IS 'When it was asked for.';

-- Name: limit_shape; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.limit_shape (
    limit_id text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL,
    subject_id text NOT NULL,
    unit text NOT NULL,
    limit_window text NOT NULL,
    time_zone text NOT NULL
);

-- Name: TABLE limit_shape; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.limit_shape IS 'What buckets of a limit count and when they begin. Buckets outlive their limit, so this does too: one that comes back under its id must be the same.';

-- Name: COLUMN limit_shape.limit_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.limit_id IS 'As in limit_definition, whether that is there or not.';

-- Name: COLUMN limit_shape.subject; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.subject IS 'As in limit_definition.';

-- Name: COLUMN limit_shape.subject_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.subject_id IS 'As in limit_definition.';

-- Name: COLUMN limit_shape.unit; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.unit IS 'As in limit_definition.';

-- Name: COLUMN limit_shape.limit_window; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.limit_window IS 'As in limit_definition.';

-- Name: COLUMN limit_shape.time_zone; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.limit_shape.time_zone IS 'As in limit_definition.';

-- Name: model; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.model (
    model_id text NOT NULL COLLATE pg_catalog."C",
    capabilities text[] DEFAULT '{}'::text[] NOT NULL,
    efforts text[] DEFAULT '{}'::text[] NOT NULL,
    context_window bigint DEFAULT 0 NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT model_capabilities_known CHECK ((capabilities <@ ARRAY['tools'::text, 'image_input'::text, 'audio_input'::text, 'json_schema'::text, 'file_input'::text])),
    CONSTRAINT model_context_window_range CHECK ((context_window >= 0)),
    CONSTRAINT model_efforts_known CHECK ((efforts <@ ARRAY['low'::text, 'medium'::text, 'high'::text]))
);

-- Name: TABLE model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.model IS 'A public model name.';

-- Name: COLUMN model.model_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.model_id IS 'The public name, 1-128 characters.';

-- Name: COLUMN model.capabilities; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.capabilities IS 'What it offers: tools, image_input, audio_input, json_schema, file_input.';

-- Name: COLUMN model.efforts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.efforts IS 'low, medium, high; empty: all.';

-- Name: COLUMN model.context_window; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.context_window IS 'Tokens of input and output together; 0: unknown.';

-- Name: COLUMN model.disabled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.disabled IS 'A disabled model is as good as unknown.';

-- Name: COLUMN model.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.created_at IS 'When it was created; shown to clients.';

-- Name: COLUMN model.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.updated_at IS 'When it was last edited.';

-- Name: COLUMN model.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: model_target; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.model_target (
    model_id text NOT NULL COLLATE pg_catalog."C",
    "position" smallint NOT NULL,
    provider_id text NOT NULL COLLATE pg_catalog."C",
    upstream_model text DEFAULT ''::text NOT NULL,
    first_token_timeout_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT model_target_timeout_range CHECK (((first_token_timeout_ms >= 0) AND (first_token_timeout_ms <= '4294967295'::bigint)))
);

-- Name: TABLE model_target; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.model_target IS 'What answers a model, in order.';

-- Name: COLUMN model_target.model_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model_target.model_id IS 'The public name.';

-- Name: COLUMN model_target."position"; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model_target."position" IS 'Order of trial, from 1.';

-- Name: COLUMN model_target.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model_target.provider_id IS 'Where it is served.';

-- Name: COLUMN model_target.upstream_model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model_target.upstream_model IS 'The name sent to the provider; empty: the public name.';

-- Name: COLUMN model_target.first_token_timeout_ms; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.model_target.first_token_timeout_ms IS 'Longest wait for the first content in milliseconds; 0: the default.';

-- Name: node; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.node (
    boot_id uuid NOT NULL,
    name text NOT NULL,
    envoy_version text NOT NULL,
    connected boolean NOT NULL,
    acked_version bigint NOT NULL,
    connected_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    rejected text[] NOT NULL,
    replica text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='50');

-- Name: TABLE node; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.node IS 'Processes of nodes as replicas last saw them.';

-- Name: COLUMN node.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.boot_id IS 'One process of an Envoy.';

-- Name: COLUMN node.name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.name IS 'A label; several processes may carry the same.';

-- Name: COLUMN node.envoy_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.envoy_version IS 'For example 1.40.0.';

-- Name: COLUMN node.connected; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.connected IS 'Whether a replica holds its config stream.';

-- Name: COLUMN node.acked_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.acked_version IS 'Newest config version it runs.';

-- Name: COLUMN node.connected_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.connected_at IS 'When its stream was opened.';

-- Name: COLUMN node.last_seen_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.last_seen_at IS 'Last sign of life.';

-- Name: COLUMN node.rejected; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.rejected IS 'Resources it refused, as kind/id: reason.';

-- Name: COLUMN node.replica; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node.replica IS 'The control plane that wrote this, by host and address: when it starts anew, its nodes are not connected any more. Empty: unknown.';

-- Name: node_boot; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.node_boot (
    boot_id uuid NOT NULL,
    node text NOT NULL,
    epoch bigint NOT NULL,
    standing text NOT NULL,
    draining boolean NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT node_boot_epoch_positive CHECK ((epoch > 0)),
    CONSTRAINT node_boot_standing_known CHECK ((standing = ANY (ARRAY['live'::text, 'lost'::text, 'closed'::text])))
)
WITH (fillfactor='50');

-- Name: TABLE node_boot; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.node_boot IS 'Processes of nodes that hold leases.';

-- Name: COLUMN node_boot.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.boot_id IS 'One process of an Envoy.';

-- Name: COLUMN node_boot.node; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.node IS 'Name of the node, a label.';

-- Name: COLUMN node_boot.epoch; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.epoch IS 'Rises when the process is fenced; its credit belongs to an epoch.';

-- Name: COLUMN node_boot.standing; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.standing IS 'live; lost: its beats stopped; closed: it holds nothing any more.';

-- Name: COLUMN node_boot.draining; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.draining IS 'It shuts down: it gets no more than what a waiting request lacks.';

-- Name: COLUMN node_boot.expires_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.node_boot.expires_at IS 'From then on it may be fenced.';

-- Name: pending_edit; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.pending_edit (
    kind text NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    noted_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    tried_version bigint,
    fault text
);

-- Name: TABLE pending_edit; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.pending_edit IS 'Edited resources whose published form may be out of date. Written by triggers, so that rows changed past the API are seen too.';

-- Name: COLUMN pending_edit.kind; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.pending_edit.kind IS 'As in published_resource.';

-- Name: COLUMN pending_edit.id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.pending_edit.id IS 'As in published_resource.';

-- Name: COLUMN pending_edit.noted_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.pending_edit.noted_at IS 'When it was last edited.';

-- Name: COLUMN pending_edit.tried_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.pending_edit.tried_version IS 'Newest config version with which publishing it failed; null: not tried since the edit.';

-- Name: COLUMN pending_edit.fault; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.pending_edit.fault IS 'Why it was not published.';

-- Name: price_book; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.price_book (
    version bigint NOT NULL,
    prices jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    created_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT price_book_prices_array CHECK ((jsonb_typeof(prices) = 'array'::text)),
    CONSTRAINT price_book_version_positive CHECK ((version > 0))
);

-- Name: TABLE price_book; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.price_book IS 'Every version of the price book; the highest holds. Rows are never changed.';

-- Name: COLUMN price_book.version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.price_book.version IS 'Rises by one with each change.';

-- Name: COLUMN price_book.prices; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.price_book.prices IS 'Array of objects with provider, upstream_model, effective_from_s, and integer pico-USD per token by class; a missing class is unknown.';

-- Name: COLUMN price_book.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.price_book.created_at IS 'When it was written.';

-- Name: COLUMN price_book.created_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.price_book.created_by IS 'Name of the transaction that wrote it; sql: by hand.';

-- Name: provider; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.provider (
    provider_id text NOT NULL COLLATE pg_catalog."C",
    display_name text DEFAULT ''::text NOT NULL,
    dialect text NOT NULL,
    base_url text NOT NULL,
    existing_cluster text DEFAULT ''::text NOT NULL,
    ca_pem text DEFAULT ''::text NOT NULL,
    credential_place text DEFAULT 'bearer'::text NOT NULL,
    stream_usage_option boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    query text DEFAULT ''::text NOT NULL,
    header_names text[] DEFAULT '{}'::text[] NOT NULL,
    header_values text[] DEFAULT '{}'::text[] NOT NULL,
    region text DEFAULT ''::text NOT NULL,
    quirks text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT provider_credential_place_known CHECK ((credential_place = ANY (ARRAY['bearer'::text, 'api_key'::text, 'x_api_key'::text, 'none'::text, 'x_goog_api_key'::text, 'sigv4'::text]))),
    CONSTRAINT provider_dialect_known CHECK ((dialect = ANY (ARRAY['openai'::text, 'anthropic'::text, 'gemini'::text, 'converse'::text]))),
    CONSTRAINT provider_headers_paired CHECK ((cardinality(header_names) = cardinality(header_values)))
);

-- Name: TABLE provider; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.provider IS 'Where models are served.';

-- Name: COLUMN provider.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.provider_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN provider.display_name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.display_name IS 'For people.';

-- Name: COLUMN provider.dialect; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.dialect IS 'The protocol it speaks: openai, anthropic, gemini or converse.';

COMMENT ON COLUMN public.provider.query IS 'Query of every request, without its question mark.';

COMMENT ON COLUMN public.provider.header_names IS 'Names of the headers that are sent with every request.';

COMMENT ON COLUMN public.provider.header_values IS 'Their values, in the same order.';

COMMENT ON COLUMN public.provider.region IS 'AWS region that requests are signed for.';

COMMENT ON COLUMN public.provider.quirks IS 'In what it differs from the first of its dialect.';

-- Name: COLUMN provider.base_url; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.base_url IS 'As SDKs write it, for example https://api.openai.com/v1.';

-- Name: COLUMN provider.existing_cluster; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.existing_cluster IS 'Name of an Envoy cluster that the mesh owns; empty: one is built from base_url.';

-- Name: COLUMN provider.ca_pem; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.ca_pem IS 'PEM of the certificate authorities to trust; empty: the node''s system store.';

-- Name: COLUMN provider.credential_place; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.credential_place IS 'Header of the credential: bearer, api_key, x_api_key, or none.';

-- Name: COLUMN provider.stream_usage_option; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.stream_usage_option IS 'Whether it accepts stream_options.include_usage.';

-- Name: COLUMN provider.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.created_at IS 'When it was created.';

-- Name: COLUMN provider.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.updated_at IS 'When it was last edited.';

-- Name: COLUMN provider.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: published_resource; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.published_resource (
    kind text NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    body bytea,
    CONSTRAINT published_resource_version_positive CHECK ((version > 0))
);

-- Name: TABLE published_resource; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.published_resource IS 'What nodes are sent: the last state of each resource that compiled.';

-- Name: COLUMN published_resource.kind; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.published_resource.kind IS 'team, virtual_key, provider, credential, model, rule_set, price_book, limit or settings.';

-- Name: COLUMN published_resource.id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.published_resource.id IS 'Resource name on the wire; default for singletons.';

-- Name: COLUMN published_resource.version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.published_resource.version IS 'Config version that last changed it.';

-- Name: COLUMN published_resource.body; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.published_resource.body IS 'Encoded message of turnpike.config.v1; for kind credential sealed with a master key. Null: removed in that version.';

-- Name: rule_set; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.rule_set (
    one boolean DEFAULT true NOT NULL,
    rules jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT rule_set_one CHECK (one),
    CONSTRAINT rule_set_rules_array CHECK ((jsonb_typeof(rules) = 'array'::text))
);

-- Name: TABLE rule_set; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.rule_set IS 'One row: the rules, replaced as a whole.';

-- Name: COLUMN rule_set.one; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rule_set.one IS 'Always true: there is one row.';

-- Name: COLUMN rule_set.rules; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rule_set.rules IS 'Array of objects with name, priority, disabled, efforts, attributes, match_model, models, max_attempts.';

-- Name: COLUMN rule_set.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rule_set.created_at IS 'When the database was made.';

-- Name: COLUMN rule_set.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rule_set.updated_at IS 'When it was last edited.';

-- Name: COLUMN rule_set.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.rule_set.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: settings; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.settings (
    one boolean DEFAULT true NOT NULL,
    setting jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL,
    CONSTRAINT settings_one CHECK (one),
    CONSTRAINT settings_setting_object CHECK ((jsonb_typeof(setting) = 'object'::text))
);

-- Name: TABLE settings; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.settings IS 'One row: the settings of the whole deployment.';

-- Name: COLUMN settings.one; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.settings.one IS 'Always true: there is one row.';

-- Name: COLUMN settings.setting; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.settings.setting IS 'Fields of turnpike.config.v1.Settings by name; a missing or zero one has its default.';

-- Name: COLUMN settings.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.settings.created_at IS 'When the database was made.';

-- Name: COLUMN settings.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.settings.updated_at IS 'When it was last edited.';

-- Name: COLUMN settings.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.settings.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: team; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.team (
    team_id text NOT NULL COLLATE pg_catalog."C",
    display_name text DEFAULT ''::text NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    models text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL
);

-- Name: TABLE team; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.team IS 'A group of keys that is billed and limited together.';

-- Name: COLUMN team.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.team_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN team.display_name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.display_name IS 'For people.';

-- Name: COLUMN team.disabled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.disabled IS 'Keys of a disabled team are refused.';

-- Name: COLUMN team.models; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.models IS 'Public model names or prefix/*; empty: every model.';

-- Name: COLUMN team.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.created_at IS 'When it was created.';

-- Name: COLUMN team.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.updated_at IS 'When it was last edited.';

-- Name: COLUMN team.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.team.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: usage_correction; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_correction (
    slot timestamp with time zone NOT NULL,
    team_id text NOT NULL,
    virtual_key_id text NOT NULL,
    rule text NOT NULL,
    model text NOT NULL,
    provider_id text NOT NULL,
    upstream_model text NOT NULL,
    estimated boolean NOT NULL,
    price_version bigint NOT NULL,
    usage_reprice_id bigint NOT NULL,
    delta_nusd bigint NOT NULL,
    priced_attempts bigint NOT NULL
);

-- Name: TABLE usage_correction; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_correction IS 'What is to be added to a row of usage_rollup, which itself is never edited. Rows are never changed; limits are not moved by them.';

-- Name: COLUMN usage_correction.slot; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.slot IS 'As in usage_rollup, as the next eight are: they name the row.';

-- Name: COLUMN usage_correction.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.team_id IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.virtual_key_id IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.rule; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.rule IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.model IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.provider_id IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.upstream_model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.upstream_model IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.estimated; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.estimated IS 'As in usage_rollup.';

-- Name: COLUMN usage_correction.price_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.price_version IS 'As in usage_rollup: the price book that was booked with.';

-- Name: COLUMN usage_correction.usage_reprice_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.usage_reprice_id IS 'What it belongs to, with the price book that it was computed with.';

-- Name: COLUMN usage_correction.delta_nusd; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.delta_nusd IS 'Nano-USD to be added; negative: to be taken off.';

-- Name: COLUMN usage_correction.priced_attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_correction.priced_attempts IS 'Attempts to be taken off unpriced_attempts.';

-- Name: usage_cursor; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_cursor (
    boot_id uuid NOT NULL,
    shard bigint NOT NULL,
    node text DEFAULT ''::text NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    CONSTRAINT usage_cursor_last_seq_range CHECK ((last_seq >= 0))
)
WITH (fillfactor='50');

-- Name: TABLE usage_cursor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_cursor IS 'How far each shard was taken. Locked, in key order, by every transaction that takes records of it.';

-- Name: COLUMN usage_cursor.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_cursor.boot_id IS 'One process of a node.';

-- Name: COLUMN usage_cursor.shard; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_cursor.shard IS 'One worker''s sequence in it.';

-- Name: COLUMN usage_cursor.node; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_cursor.node IS 'Name of the node, a label.';

-- Name: COLUMN usage_cursor.last_seq; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_cursor.last_seq IS 'Everything up to and including this sequence is in the ledger, or in usage_gap.';

-- Name: usage_gap; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_gap (
    boot_id uuid NOT NULL,
    shard bigint NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    reason integer NOT NULL,
    seen_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    CONSTRAINT usage_gap_order CHECK ((from_seq <= to_seq))
);

-- Name: TABLE usage_gap; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_gap IS 'Records that no longer exist: loss is shown.';

-- Name: COLUMN usage_gap.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.boot_id IS 'As in usage_cursor.';

-- Name: COLUMN usage_gap.shard; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.shard IS 'As in usage_cursor.';

-- Name: COLUMN usage_gap.from_seq; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.from_seq IS 'First lost sequence.';

-- Name: COLUMN usage_gap.to_seq; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.to_seq IS 'Last lost sequence.';

-- Name: COLUMN usage_gap.reason; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.reason IS 'turnpike.metering.v1.GapReason: 1 disk full, 2 torn, 3 lost.';

-- Name: COLUMN usage_gap.seen_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_gap.seen_at IS 'When the node said so.';

-- Name: usage_record; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_record (
    day date NOT NULL,
    boot_id uuid NOT NULL,
    shard bigint NOT NULL,
    seq bigint NOT NULL,
    admitted_at timestamp with time zone NOT NULL,
    received_at timestamp with time zone NOT NULL,
    decoded boolean NOT NULL,
    request_id text NOT NULL,
    team_id text NOT NULL,
    virtual_key_id text NOT NULL,
    end_user text NOT NULL,
    model text NOT NULL,
    provider_id text NOT NULL,
    status integer NOT NULL,
    ended integer NOT NULL,
    price_version bigint NOT NULL,
    attempts bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    estimated_attempts bigint NOT NULL,
    unpriced_attempts bigint NOT NULL,
    cost_nusd bigint NOT NULL,
    record bytea NOT NULL
)
PARTITION BY RANGE (day);

-- Name: TABLE usage_record; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_record IS 'One exchange each, as the node sent it. Days have partitions; what fits none is in the default one.';

-- Name: COLUMN usage_record.day; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.day IS 'UTC day of admission.';

-- Name: COLUMN usage_record.boot_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.boot_id IS 'As in usage_cursor.';

-- Name: COLUMN usage_record.shard; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.shard IS 'As in usage_cursor.';

-- Name: COLUMN usage_record.seq; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.seq IS 'Sequence in the shard, contiguous from 1.';

-- Name: COLUMN usage_record.admitted_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.admitted_at IS 'When the exchange was admitted, by the node''s clock, kept within sane bounds of received_at.';

-- Name: COLUMN usage_record.received_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.received_at IS 'When the control plane took it.';

-- Name: COLUMN usage_record.decoded; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.decoded IS 'False: the bytes are no known record; kept, and in no sum.';

-- Name: COLUMN usage_record.request_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.request_id IS 'x-request-id.';

-- Name: COLUMN usage_record.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.team_id IS 'Team of the caller.';

-- Name: COLUMN usage_record.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.virtual_key_id IS 'Key of the caller.';

-- Name: COLUMN usage_record.end_user; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.end_user IS 'user of the request.';

-- Name: COLUMN usage_record.model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.model IS 'Public model of the last attempt, or the planned one.';

-- Name: COLUMN usage_record.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.provider_id IS 'Provider of the last attempt.';

-- Name: COLUMN usage_record.status; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.status IS 'HTTP status the client got; 0: it left before one.';

-- Name: COLUMN usage_record.ended; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.ended IS 'turnpike.metering.v1.End as a number, known or not.';

-- Name: COLUMN usage_record.price_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.price_version IS 'Price book of the costs; 0: none.';

-- Name: COLUMN usage_record.attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.attempts IS 'Attempts that may have reached a provider.';

-- Name: COLUMN usage_record.input_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.input_tokens IS 'Over all attempts; cached input and cache writes included.';

-- Name: COLUMN usage_record.cached_input_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.cached_input_tokens IS 'Of input_tokens, read from a cache.';

-- Name: COLUMN usage_record.cache_write_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.cache_write_tokens IS 'Of input_tokens, written to a cache.';

-- Name: COLUMN usage_record.output_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.output_tokens IS 'Over all attempts; reasoning included.';

-- Name: COLUMN usage_record.reasoning_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.reasoning_tokens IS 'Of output_tokens, reasoning.';

-- Name: COLUMN usage_record.estimated_attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.estimated_attempts IS 'Attempts whose tokens are estimates.';

-- Name: COLUMN usage_record.unpriced_attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.unpriced_attempts IS 'Attempts with tokens of which some have no price.';

-- Name: COLUMN usage_record.cost_nusd; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.cost_nusd IS 'Nano-USD over everything that has a price.';

-- Name: COLUMN usage_record.record; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_record.record IS 'The encoded turnpike.metering.v1.UsageRecord.';

-- Name: usage_record_default; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_record_default (
    day date NOT NULL,
    boot_id uuid NOT NULL,
    shard bigint NOT NULL,
    seq bigint NOT NULL,
    admitted_at timestamp with time zone NOT NULL,
    received_at timestamp with time zone NOT NULL,
    decoded boolean NOT NULL,
    request_id text NOT NULL,
    team_id text NOT NULL,
    virtual_key_id text NOT NULL,
    end_user text NOT NULL,
    model text NOT NULL,
    provider_id text NOT NULL,
    status integer NOT NULL,
    ended integer NOT NULL,
    price_version bigint NOT NULL,
    attempts bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    estimated_attempts bigint NOT NULL,
    unpriced_attempts bigint NOT NULL,
    cost_nusd bigint NOT NULL,
    record bytea NOT NULL
);

-- Name: usage_reprice; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_reprice (
    usage_reprice_id bigint NOT NULL,
    request_id text,
    request jsonb NOT NULL,
    answer jsonb NOT NULL,
    price_version bigint NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL
);

-- Name: TABLE usage_reprice; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_reprice IS 'Every time that usage was priced anew. Locked against each other, so that each sees the corrections of those before.';

-- Name: COLUMN usage_reprice.usage_reprice_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.usage_reprice_id IS 'Rises with time.';

-- Name: COLUMN usage_reprice.request_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.request_id IS 'Chosen by the caller, so that a repeated request changes nothing; null: none was.';

-- Name: COLUMN usage_reprice.request; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.request IS 'What was asked for.';

-- Name: COLUMN usage_reprice.answer; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.answer IS 'What was answered.';

-- Name: COLUMN usage_reprice.price_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.price_version IS 'Price book that was used; 0: none.';

-- Name: COLUMN usage_reprice.reason; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.reason IS 'Why, in the words of who did it.';

-- Name: COLUMN usage_reprice.actor; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.actor IS 'Who did it.';

-- Name: COLUMN usage_reprice.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_reprice.created_at IS 'When.';

-- Name: usage_reprice_usage_reprice_id_seq; Type: SEQUENCE; Schema: public; Owner: -

ALTER TABLE public.usage_reprice ALTER COLUMN usage_reprice_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.usage_reprice_usage_reprice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: usage_rollup; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.usage_rollup (
    slot timestamp with time zone NOT NULL,
    team_id text NOT NULL,
    virtual_key_id text NOT NULL,
    rule text NOT NULL,
    model text NOT NULL,
    provider_id text NOT NULL,
    upstream_model text NOT NULL,
    estimated boolean NOT NULL,
    price_version bigint NOT NULL,
    requests bigint NOT NULL,
    attempts bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    estimated_attempts bigint NOT NULL,
    unpriced_attempts bigint NOT NULL,
    cost_nusd bigint NOT NULL
)
WITH (fillfactor='70');

-- Name: TABLE usage_rollup; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.usage_rollup IS 'Sums over 15 minutes of admission, written in the transaction of their records. Texts are empty where there is none.';

-- Name: COLUMN usage_rollup.slot; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.slot IS 'Start of the 15 minutes.';

-- Name: COLUMN usage_rollup.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.team_id IS 'Team of the caller.';

-- Name: COLUMN usage_rollup.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.virtual_key_id IS 'Key of the caller.';

-- Name: COLUMN usage_rollup.rule; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.rule IS 'Rule that matched.';

-- Name: COLUMN usage_rollup.model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.model IS 'Public model of the attempt.';

-- Name: COLUMN usage_rollup.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.provider_id IS 'Provider of the attempt.';

-- Name: COLUMN usage_rollup.upstream_model; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.upstream_model IS 'Model''s name there.';

-- Name: COLUMN usage_rollup.estimated; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.estimated IS 'Whether the tokens are estimates.';

-- Name: COLUMN usage_rollup.price_version; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.price_version IS 'Price book of the costs; 0: none.';

-- Name: COLUMN usage_rollup.requests; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.requests IS 'Exchanges whose last attempt is in this row.';

-- Name: COLUMN usage_rollup.attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.attempts IS 'Attempts.';

-- Name: COLUMN usage_rollup.input_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.input_tokens IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.cached_input_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.cached_input_tokens IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.cache_write_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.cache_write_tokens IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.output_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.output_tokens IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.reasoning_tokens; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.reasoning_tokens IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.estimated_attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.estimated_attempts IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.unpriced_attempts; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.unpriced_attempts IS 'As in usage_record.';

-- Name: COLUMN usage_rollup.cost_nusd; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.usage_rollup.cost_nusd IS 'As in usage_record.';

-- Name: virtual_key; Type: TABLE; Schema: public; Owner: -

CREATE TABLE public.virtual_key (
    virtual_key_id text NOT NULL COLLATE pg_catalog."C",
    team_id text NOT NULL COLLATE pg_catalog."C",
    display_name text DEFAULT ''::text NOT NULL,
    disabled boolean DEFAULT false NOT NULL,
    models text[] DEFAULT '{}'::text[] NOT NULL,
    expires_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_at timestamp with time zone DEFAULT public.turnpike_now() NOT NULL,
    updated_by text DEFAULT 'sql'::text NOT NULL
);

-- Name: TABLE virtual_key; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.virtual_key IS 'What a caller presents. Limits belong to its id, not to a secret.';

-- Name: COLUMN virtual_key.virtual_key_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.virtual_key_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN virtual_key.team_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.team_id IS 'The team that owns it; fixed at creation.';

-- Name: COLUMN virtual_key.display_name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.display_name IS 'For people.';

-- Name: COLUMN virtual_key.disabled; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.disabled IS 'A disabled key is refused, as an unknown one is.';

-- Name: COLUMN virtual_key.models; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.models IS 'Public model names or prefix/*; empty: whatever the team may use.';

-- Name: COLUMN virtual_key.expires_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.expires_at IS 'After this moment every secret is refused; null: never.';

-- Name: COLUMN virtual_key.created_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.created_at IS 'When it was created.';

-- Name: COLUMN virtual_key.updated_at; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.updated_at IS 'When it was last edited.';

-- Name: COLUMN virtual_key.updated_by; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.virtual_key.updated_by IS 'Name of the transaction that last edited it; sql: by hand.';

-- Name: usage_record_default; Type: TABLE ATTACH; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_record ATTACH PARTITION public.usage_record_default DEFAULT;

-- Name: audit_entry audit_entry_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (audit_entry_id);

-- Name: config_state config_state_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.config_state
    ADD CONSTRAINT config_state_pkey PRIMARY KEY (one);

-- Name: credential credential_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_pkey PRIMARY KEY (credential_id);

-- Name: key_secret key_secret_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.key_secret
    ADD CONSTRAINT key_secret_pkey PRIMARY KEY (virtual_key_id, "position");

-- Name: key_secret key_secret_sha256_unique; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.key_secret
    ADD CONSTRAINT key_secret_sha256_unique UNIQUE (sha256);

-- Name: lease_clock lease_clock_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.lease_clock
    ADD CONSTRAINT lease_clock_pkey PRIMARY KEY (one);

-- Name: limit_adjustment limit_adjustment_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_adjustment
    ADD CONSTRAINT limit_adjustment_pkey PRIMARY KEY (limit_adjustment_id);

-- Name: limit_bucket limit_bucket_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_bucket
    ADD CONSTRAINT limit_bucket_pkey PRIMARY KEY (bucket_id);

-- Name: limit_bucket limit_bucket_unique; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_bucket
    ADD CONSTRAINT limit_bucket_unique UNIQUE (limit_id, subject, window_start);

-- Name: limit_definition limit_definition_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_definition
    ADD CONSTRAINT limit_definition_pkey PRIMARY KEY (limit_id);

-- Name: limit_event limit_event_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_event
    ADD CONSTRAINT limit_event_pkey PRIMARY KEY (limit_event_id);

-- Name: limit_event limit_event_unique; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_event
    ADD CONSTRAINT limit_event_unique UNIQUE (bucket_id, threshold);

-- Name: limit_lease limit_lease_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_lease
    ADD CONSTRAINT limit_lease_pkey PRIMARY KEY (bucket_id, boot_id, epoch);

-- Name: limit_recall limit_recall_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_recall
    ADD CONSTRAINT limit_recall_pkey PRIMARY KEY (bucket_id);

-- Name: limit_shape limit_shape_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_shape
    ADD CONSTRAINT limit_shape_pkey PRIMARY KEY (limit_id);

-- Name: model model_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model
    ADD CONSTRAINT model_pkey PRIMARY KEY (model_id);

-- Name: model_target model_target_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_pkey PRIMARY KEY (model_id, "position");

-- Name: node_boot node_boot_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.node_boot
    ADD CONSTRAINT node_boot_pkey PRIMARY KEY (boot_id);

-- Name: node node_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (boot_id);

-- Name: pending_edit pending_edit_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.pending_edit
    ADD CONSTRAINT pending_edit_pkey PRIMARY KEY (kind, id);

-- Name: price_book price_book_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.price_book
    ADD CONSTRAINT price_book_pkey PRIMARY KEY (version);

-- Name: provider provider_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.provider
    ADD CONSTRAINT provider_pkey PRIMARY KEY (provider_id);

-- Name: published_resource published_resource_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.published_resource
    ADD CONSTRAINT published_resource_pkey PRIMARY KEY (kind, id);

-- Name: rule_set rule_set_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.rule_set
    ADD CONSTRAINT rule_set_pkey PRIMARY KEY (one);

-- Name: settings settings_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (one);

-- Name: team team_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.team
    ADD CONSTRAINT team_pkey PRIMARY KEY (team_id);

-- Name: usage_correction usage_correction_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_correction
    ADD CONSTRAINT usage_correction_pkey PRIMARY KEY (slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model, estimated, price_version, usage_reprice_id);

-- Name: usage_cursor usage_cursor_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_cursor
    ADD CONSTRAINT usage_cursor_pkey PRIMARY KEY (boot_id, shard);

-- Name: usage_gap usage_gap_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_gap
    ADD CONSTRAINT usage_gap_pkey PRIMARY KEY (boot_id, shard, from_seq);

-- Name: usage_record usage_record_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_record
    ADD CONSTRAINT usage_record_pkey PRIMARY KEY (day, boot_id, shard, seq);

-- Name: usage_record_default usage_record_default_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_record_default
    ADD CONSTRAINT usage_record_default_pkey PRIMARY KEY (day, boot_id, shard, seq);

-- Name: usage_reprice usage_reprice_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_reprice
    ADD CONSTRAINT usage_reprice_pkey PRIMARY KEY (usage_reprice_id);

-- Name: usage_reprice usage_reprice_request_unique; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_reprice
    ADD CONSTRAINT usage_reprice_request_unique UNIQUE (request_id);

-- Name: usage_rollup usage_rollup_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_rollup
    ADD CONSTRAINT usage_rollup_pkey PRIMARY KEY (slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model, estimated, price_version);

-- Name: virtual_key virtual_key_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.virtual_key
    ADD CONSTRAINT virtual_key_pkey PRIMARY KEY (virtual_key_id);

-- Name: audit_entry_by_config_version; Type: INDEX; Schema: public; Owner: -

CREATE INDEX audit_entry_by_config_version ON public.audit_entry USING btree (config_version);

-- Name: credential_by_provider; Type: INDEX; Schema: public; Owner: -

CREATE INDEX credential_by_provider ON public.credential USING btree (provider_id, credential_id);

-- Name: credential_by_team; Type: INDEX; Schema: public; Owner: -

CREATE INDEX credential_by_team ON public.credential USING btree (team_id) WHERE (team_id IS NOT NULL);

-- Name: credential_by_virtual_key; Type: INDEX; Schema: public; Owner: -

CREATE INDEX credential_by_virtual_key ON public.credential USING btree (virtual_key_id) WHERE (virtual_key_id IS NOT NULL);

-- Name: limit_adjustment_by_bucket; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_adjustment_by_bucket ON public.limit_adjustment USING btree (bucket_id);

-- Name: limit_bucket_by_end; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_bucket_by_end ON public.limit_bucket USING btree (window_end);

-- Name: limit_event_by_time; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_event_by_time ON public.limit_event USING btree (raised_at, limit_event_id);

-- Name: limit_event_due; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_event_due ON public.limit_event USING btree (try_at) WHERE (delivered_at IS NULL);

-- Name: limit_lease_by_boot; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_lease_by_boot ON public.limit_lease USING btree (boot_id, epoch);

-- Name: limit_lease_lost; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_lease_lost ON public.limit_lease USING btree (lost_at) WHERE (lost_at IS NOT NULL);

-- Name: limit_lease_unaccounted; Type: INDEX; Schema: public; Owner: -

CREATE INDEX limit_lease_unaccounted ON public.limit_lease USING btree (bucket_id) WHERE (unaccounted > 0);

-- Name: model_target_by_provider; Type: INDEX; Schema: public; Owner: -

CREATE INDEX model_target_by_provider ON public.model_target USING btree (provider_id);

-- Name: published_resource_by_version; Type: INDEX; Schema: public; Owner: -

CREATE INDEX published_resource_by_version ON public.published_resource USING btree (version);

-- Name: usage_record_by_admission; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_by_admission ON ONLY public.usage_record USING btree (admitted_at, boot_id, shard, seq);

-- Name: usage_record_by_request; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_by_request ON ONLY public.usage_record USING btree (request_id);

-- Name: usage_record_by_virtual_key; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_by_virtual_key ON ONLY public.usage_record USING btree (virtual_key_id, admitted_at);

-- Name: usage_record_default_admitted_at_boot_id_shard_seq_idx; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_default_admitted_at_boot_id_shard_seq_idx ON public.usage_record_default USING btree (admitted_at, boot_id, shard, seq);

-- Name: usage_record_default_request_id_idx; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_default_request_id_idx ON public.usage_record_default USING btree (request_id);

-- Name: usage_record_default_virtual_key_id_admitted_at_idx; Type: INDEX; Schema: public; Owner: -

CREATE INDEX usage_record_default_virtual_key_id_admitted_at_idx ON public.usage_record_default USING btree (virtual_key_id, admitted_at);

-- Name: virtual_key_by_team; Type: INDEX; Schema: public; Owner: -

CREATE INDEX virtual_key_by_team ON public.virtual_key USING btree (team_id, virtual_key_id);

-- Name: usage_record_default_admitted_at_boot_id_shard_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -

ALTER INDEX public.usage_record_by_admission ATTACH PARTITION public.usage_record_default_admitted_at_boot_id_shard_seq_idx;

-- Name: usage_record_default_pkey; Type: INDEX ATTACH; Schema: public; Owner: -

ALTER INDEX public.usage_record_pkey ATTACH PARTITION public.usage_record_default_pkey;

-- Name: usage_record_default_request_id_idx; Type: INDEX ATTACH; Schema: public; Owner: -

ALTER INDEX public.usage_record_by_request ATTACH PARTITION public.usage_record_default_request_id_idx;

-- Name: usage_record_default_virtual_key_id_admitted_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -

ALTER INDEX public.usage_record_by_virtual_key ATTACH PARTITION public.usage_record_default_virtual_key_id_admitted_at_idx;

-- Name: credential credential_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER credential_edited AFTER INSERT OR DELETE OR UPDATE ON public.credential FOR EACH ROW EXECUTE FUNCTION public.note_edit('credential', 'credential_id');

-- Name: credential credential_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER credential_stamp BEFORE INSERT OR UPDATE ON public.credential FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: key_secret key_secret_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER key_secret_edited AFTER INSERT OR DELETE OR UPDATE ON public.key_secret FOR EACH ROW EXECUTE FUNCTION public.note_edit('virtual_key', 'virtual_key_id');

-- Name: limit_definition limit_definition_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER limit_definition_edited AFTER INSERT OR DELETE OR UPDATE ON public.limit_definition FOR EACH ROW EXECUTE FUNCTION public.note_edit('limit', 'limit_id');

-- Name: limit_definition limit_definition_shape; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER limit_definition_shape AFTER INSERT OR UPDATE ON public.limit_definition FOR EACH ROW EXECUTE FUNCTION public.keep_limit_shape();

-- Name: limit_definition limit_definition_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER limit_definition_stamp BEFORE INSERT OR UPDATE ON public.limit_definition FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: model model_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER model_edited AFTER INSERT OR DELETE OR UPDATE ON public.model FOR EACH ROW EXECUTE FUNCTION public.note_edit('model', 'model_id');

-- Name: model model_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER model_stamp BEFORE INSERT OR UPDATE ON public.model FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: model_target model_target_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER model_target_edited AFTER INSERT OR DELETE OR UPDATE ON public.model_target FOR EACH ROW EXECUTE FUNCTION public.note_edit('model', 'model_id');

-- Name: price_book price_book_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER price_book_edited AFTER INSERT OR DELETE OR UPDATE ON public.price_book FOR EACH ROW EXECUTE FUNCTION public.note_edit('price_book', '');

-- Name: provider provider_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER provider_edited AFTER INSERT OR DELETE OR UPDATE ON public.provider FOR EACH ROW EXECUTE FUNCTION public.note_edit('provider', 'provider_id');

-- Name: provider provider_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER provider_stamp BEFORE INSERT OR UPDATE ON public.provider FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: rule_set rule_set_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER rule_set_edited AFTER INSERT OR DELETE OR UPDATE ON public.rule_set FOR EACH ROW EXECUTE FUNCTION public.note_edit('rule_set', '');

-- Name: rule_set rule_set_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER rule_set_stamp BEFORE INSERT OR UPDATE ON public.rule_set FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: settings settings_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER settings_edited AFTER INSERT OR DELETE OR UPDATE ON public.settings FOR EACH ROW EXECUTE FUNCTION public.note_edit('settings', '');

-- Name: settings settings_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER settings_stamp BEFORE INSERT OR UPDATE ON public.settings FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: team team_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER team_edited AFTER INSERT OR DELETE OR UPDATE ON public.team FOR EACH ROW EXECUTE FUNCTION public.note_edit('team', 'team_id');

-- Name: team team_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER team_stamp BEFORE INSERT OR UPDATE ON public.team FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: virtual_key virtual_key_edited; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER virtual_key_edited AFTER INSERT OR DELETE OR UPDATE ON public.virtual_key FOR EACH ROW EXECUTE FUNCTION public.note_edit('virtual_key', 'virtual_key_id');

-- Name: virtual_key virtual_key_stamp; Type: TRIGGER; Schema: public; Owner: -

CREATE TRIGGER virtual_key_stamp BEFORE INSERT OR UPDATE ON public.virtual_key FOR EACH ROW EXECUTE FUNCTION public.stamp_edit();

-- Name: credential credential_provider_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_provider_fkey FOREIGN KEY (provider_id) REFERENCES public.provider(provider_id);

-- Name: credential credential_team_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_team_fkey FOREIGN KEY (team_id) REFERENCES public.team(team_id);

-- Name: credential credential_virtual_key_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_virtual_key_fkey FOREIGN KEY (virtual_key_id) REFERENCES public.virtual_key(virtual_key_id);

-- Name: key_secret key_secret_virtual_key_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.key_secret
    ADD CONSTRAINT key_secret_virtual_key_fkey FOREIGN KEY (virtual_key_id) REFERENCES public.virtual_key(virtual_key_id) ON DELETE CASCADE;

-- Name: limit_adjustment limit_adjustment_bucket_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_adjustment
    ADD CONSTRAINT limit_adjustment_bucket_fkey FOREIGN KEY (bucket_id) REFERENCES public.limit_bucket(bucket_id) ON DELETE CASCADE;

-- Name: limit_event limit_event_bucket_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_event
    ADD CONSTRAINT limit_event_bucket_fkey FOREIGN KEY (bucket_id) REFERENCES public.limit_bucket(bucket_id) ON DELETE CASCADE;

-- Name: limit_lease limit_lease_bucket_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_lease
    ADD CONSTRAINT limit_lease_bucket_fkey FOREIGN KEY (bucket_id) REFERENCES public.limit_bucket(bucket_id) ON DELETE CASCADE;

-- Name: limit_recall limit_recall_bucket_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.limit_recall
    ADD CONSTRAINT limit_recall_bucket_fkey FOREIGN KEY (bucket_id) REFERENCES public.limit_bucket(bucket_id) ON DELETE CASCADE;

-- Name: model_target model_target_model_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_model_fkey FOREIGN KEY (model_id) REFERENCES public.model(model_id) ON DELETE CASCADE;

-- Name: model_target model_target_provider_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_provider_fkey FOREIGN KEY (provider_id) REFERENCES public.provider(provider_id);

-- Name: usage_correction usage_correction_reprice_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.usage_correction
    ADD CONSTRAINT usage_correction_reprice_fkey FOREIGN KEY (usage_reprice_id) REFERENCES public.usage_reprice(usage_reprice_id);

-- Name: virtual_key virtual_key_team_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.virtual_key
    ADD CONSTRAINT virtual_key_team_fkey FOREIGN KEY (team_id) REFERENCES public.team(team_id);

-- PostgreSQL database dump complete

