-- Config is edited in one place and published in another: a row that does not compile stays
-- unpublished, and nodes keep getting the last published form of everything.

create table config_state (
    one boolean not null default true,
    version bigint not null default 0,
    nonce text not null default gen_random_uuid()::text,
    pruned_version bigint not null default 0,
    constraint config_state_pkey primary key (one),
    constraint config_state_one check (one),
    constraint config_state_version_order check (0 <= pruned_version and pruned_version <= version)
);
comment on table config_state is
    'One row. Every mutation locks it first, so the order of versions is the order of commits.';
comment on column config_state.one is 'Always true: there is one row.';
comment on column config_state.version is 'The newest published config version.';
comment on column config_state.nonce is 'Names the lineage of this database; versions of another are not comparable.';
comment on column config_state.pruned_version is 'Removals up to and including this version are forgotten.';
insert into config_state default values;

create table published_resource (
    kind text not null,
    id text not null collate "C",
    version bigint not null,
    body bytea,
    constraint published_resource_pkey primary key (kind, id),
    constraint published_resource_version_positive check (version > 0)
);
create index published_resource_by_version on published_resource (version);
comment on table published_resource is 'What nodes are sent: the last state of each resource that compiled.';
comment on column published_resource.kind is 'team, virtual_key, provider, credential, model, rule_set, price_book or settings.';
comment on column published_resource.id is 'Resource name on the wire; default for singletons.';
comment on column published_resource.version is 'Config version that last changed it.';
comment on column published_resource.body is
    'Encoded message of turnpike.config.v1; for kind credential sealed with a master key. Null: removed in that version.';

create table pending_edit (
    kind text not null,
    id text not null collate "C",
    noted_at timestamptz not null default turnpike_now(),
    tried_version bigint,
    fault text,
    constraint pending_edit_pkey primary key (kind, id)
);
comment on table pending_edit is
    'Edited resources whose published form may be out of date. Written by triggers, so that rows changed past the API are seen too.';
comment on column pending_edit.kind is 'As in published_resource.';
comment on column pending_edit.id is 'As in published_resource.';
comment on column pending_edit.noted_at is 'When it was last edited.';
comment on column pending_edit.tried_version is 'Newest config version with which publishing it failed; null: not tried since the edit.';
comment on column pending_edit.fault is 'Why it was not published.';

-- Arguments: the kind, and the column that holds the id ('' for a singleton).
create function note_edit() returns trigger language plpgsql as $$
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
comment on function note_edit() is 'Notes in pending_edit that a resource was edited.';

create function stamp_edit() returns trigger language plpgsql as $$
begin
    new.updated_at := turnpike_now();
    new.updated_by := coalesce(nullif(current_setting('turnpike.transaction', true), ''), 'sql');
    return new;
end
$$;
comment on function stamp_edit() is 'Sets updated_at, and updated_by to the name of the transaction.';
