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
    rejected text[] NOT NULL
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
    CONSTRAINT provider_credential_place_known CHECK ((credential_place = ANY (ARRAY['bearer'::text, 'api_key'::text, 'x_api_key'::text, 'none'::text]))),
    CONSTRAINT provider_dialect_known CHECK ((dialect = 'openai'::text))
);

-- Name: TABLE provider; Type: COMMENT; Schema: public; Owner: -

COMMENT ON TABLE public.provider IS 'Where models are served.';

-- Name: COLUMN provider.provider_id; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.provider_id IS '1-64 characters of [a-z0-9-].';

-- Name: COLUMN provider.display_name; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.display_name IS 'For people.';

-- Name: COLUMN provider.dialect; Type: COMMENT; Schema: public; Owner: -

COMMENT ON COLUMN public.provider.dialect IS 'The protocol it speaks: openai.';

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

COMMENT ON COLUMN public.published_resource.kind IS 'team, virtual_key, provider, credential, model, rule_set, price_book or settings.';

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
    day date CONSTRAINT usage_record_day_not_null NOT NULL,
    boot_id uuid CONSTRAINT usage_record_boot_id_not_null NOT NULL,
    shard bigint CONSTRAINT usage_record_shard_not_null NOT NULL,
    seq bigint CONSTRAINT usage_record_seq_not_null NOT NULL,
    admitted_at timestamp with time zone CONSTRAINT usage_record_admitted_at_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT usage_record_received_at_not_null NOT NULL,
    decoded boolean CONSTRAINT usage_record_decoded_not_null NOT NULL,
    request_id text CONSTRAINT usage_record_request_id_not_null NOT NULL,
    team_id text CONSTRAINT usage_record_team_id_not_null NOT NULL,
    virtual_key_id text CONSTRAINT usage_record_virtual_key_id_not_null NOT NULL,
    end_user text CONSTRAINT usage_record_end_user_not_null NOT NULL,
    model text CONSTRAINT usage_record_model_not_null NOT NULL,
    provider_id text CONSTRAINT usage_record_provider_id_not_null NOT NULL,
    status integer CONSTRAINT usage_record_status_not_null NOT NULL,
    ended integer CONSTRAINT usage_record_ended_not_null NOT NULL,
    price_version bigint CONSTRAINT usage_record_price_version_not_null NOT NULL,
    attempts bigint CONSTRAINT usage_record_attempts_not_null NOT NULL,
    input_tokens bigint CONSTRAINT usage_record_input_tokens_not_null NOT NULL,
    cached_input_tokens bigint CONSTRAINT usage_record_cached_input_tokens_not_null NOT NULL,
    cache_write_tokens bigint CONSTRAINT usage_record_cache_write_tokens_not_null NOT NULL,
    output_tokens bigint CONSTRAINT usage_record_output_tokens_not_null NOT NULL,
    reasoning_tokens bigint CONSTRAINT usage_record_reasoning_tokens_not_null NOT NULL,
    estimated_attempts bigint CONSTRAINT usage_record_estimated_attempts_not_null NOT NULL,
    unpriced_attempts bigint CONSTRAINT usage_record_unpriced_attempts_not_null NOT NULL,
    cost_nusd bigint CONSTRAINT usage_record_cost_nusd_not_null NOT NULL,
    record bytea CONSTRAINT usage_record_record_not_null NOT NULL
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

-- Name: model model_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model
    ADD CONSTRAINT model_pkey PRIMARY KEY (model_id);

-- Name: model_target model_target_pkey; Type: CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_pkey PRIMARY KEY (model_id, "position");

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

-- Name: model_target model_target_model_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_model_fkey FOREIGN KEY (model_id) REFERENCES public.model(model_id) ON DELETE CASCADE;

-- Name: model_target model_target_provider_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.model_target
    ADD CONSTRAINT model_target_provider_fkey FOREIGN KEY (provider_id) REFERENCES public.provider(provider_id);

-- Name: virtual_key virtual_key_team_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -

ALTER TABLE ONLY public.virtual_key
    ADD CONSTRAINT virtual_key_team_fkey FOREIGN KEY (team_id) REFERENCES public.team(team_id);

-- PostgreSQL database dump complete

