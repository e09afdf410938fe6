create table provider (
    provider_id text not null collate "C",
    display_name text not null default '',
    dialect text not null,
    base_url text not null,
    existing_cluster text not null default '',
    ca_pem text not null default '',
    credential_place text not null default 'bearer',
    stream_usage_option boolean not null default true,
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint provider_pkey primary key (provider_id),
    constraint provider_dialect_known check (dialect in ('openai')),
    constraint provider_credential_place_known
        check (credential_place in ('bearer', 'api_key', 'x_api_key', 'none'))
);
comment on table provider is 'Where models are served.';
comment on column provider.provider_id is '1-64 characters of [a-z0-9-].';
comment on column provider.display_name is 'For people.';
comment on column provider.dialect is 'The protocol it speaks: openai.';
comment on column provider.base_url is 'As SDKs write it, for example https://api.openai.com/v1.';
comment on column provider.existing_cluster is 'Name of an Envoy cluster that the mesh owns; empty: one is built from base_url.';
comment on column provider.ca_pem is 'PEM of the certificate authorities to trust; empty: the node''s system store.';
comment on column provider.credential_place is 'Header of the credential: bearer, api_key, x_api_key, or none.';
comment on column provider.stream_usage_option is 'Whether it accepts stream_options.include_usage.';
comment on column provider.created_at is 'When it was created.';
comment on column provider.updated_at is 'When it was last edited.';
comment on column provider.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table credential (
    credential_id text not null collate "C",
    provider_id text not null collate "C",
    team_id text collate "C",
    virtual_key_id text collate "C",
    weight integer not null default 1,
    envelope bytea,
    file text,
    environment_variable text,
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint credential_pkey primary key (credential_id),
    constraint credential_provider_fkey foreign key (provider_id) references provider (provider_id),
    constraint credential_team_fkey foreign key (team_id) references team (team_id),
    constraint credential_virtual_key_fkey foreign key (virtual_key_id) references virtual_key (virtual_key_id),
    constraint credential_one_owner check (team_id is null or virtual_key_id is null),
    constraint credential_weight_range check (weight between 1 and 1000),
    constraint credential_one_source check (num_nonnulls(envelope, file, environment_variable) = 1)
);
create index credential_by_provider on credential (provider_id, credential_id);
create index credential_by_team on credential (team_id) where team_id is not null;
create index credential_by_virtual_key on credential (virtual_key_id) where virtual_key_id is not null;
comment on table credential is 'A provider''s secret: sealed here, or where to read it.';
comment on column credential.credential_id is '1-64 characters of [a-z0-9-].';
comment on column credential.provider_id is 'The provider it opens; fixed at creation.';
comment on column credential.team_id is 'Only for this team; null: see virtual_key_id.';
comment on column credential.virtual_key_id is 'Only for this key; with team_id null too: for everyone.';
comment on column credential.weight is 'Share among credentials of the same kind.';
comment on column credential.envelope is
    'The secret sealed with AES-256-GCM: version byte, key id (4), nonce (12), ciphertext and tag. Bound to credential and provider.';
comment on column credential.file is 'Path below the control plane''s secrets directory, read at each publish.';
comment on column credential.environment_variable is 'Variable of the control plane, read at each publish.';
comment on column credential.created_at is 'When it was created.';
comment on column credential.updated_at is 'When it was last edited.';
comment on column credential.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table model (
    model_id text not null collate "C",
    capabilities text[] not null default '{}',
    efforts text[] not null default '{}',
    context_window bigint not null default 0,
    disabled boolean not null default false,
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint model_pkey primary key (model_id),
    constraint model_capabilities_known check (capabilities <@
        array['tools', 'image_input', 'audio_input', 'json_schema', 'file_input']),
    constraint model_efforts_known check (efforts <@ array['low', 'medium', 'high']),
    constraint model_context_window_range check (context_window >= 0)
);
comment on table model is 'A public model name.';
comment on column model.model_id is 'The public name, 1-128 characters.';
comment on column model.capabilities is 'What it offers: tools, image_input, audio_input, json_schema, file_input.';
comment on column model.efforts is 'low, medium, high; empty: all.';
comment on column model.context_window is 'Tokens of input and output together; 0: unknown.';
comment on column model.disabled is 'A disabled model is as good as unknown.';
comment on column model.created_at is 'When it was created; shown to clients.';
comment on column model.updated_at is 'When it was last edited.';
comment on column model.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table model_target (
    model_id text not null collate "C",
    position smallint not null,
    provider_id text not null collate "C",
    upstream_model text not null default '',
    first_token_timeout_ms bigint not null default 0,
    constraint model_target_pkey primary key (model_id, position),
    constraint model_target_model_fkey foreign key (model_id) references model (model_id) on delete cascade,
    constraint model_target_provider_fkey foreign key (provider_id) references provider (provider_id),
    constraint model_target_timeout_range check (first_token_timeout_ms between 0 and 4294967295)
);
create index model_target_by_provider on model_target (provider_id);
comment on table model_target is 'What answers a model, in order.';
comment on column model_target.model_id is 'The public name.';
comment on column model_target.position is 'Order of trial, from 1.';
comment on column model_target.provider_id is 'Where it is served.';
comment on column model_target.upstream_model is 'The name sent to the provider; empty: the public name.';
comment on column model_target.first_token_timeout_ms is 'Longest wait for the first content in milliseconds; 0: the default.';

create table rule_set (
    one boolean not null default true,
    rules jsonb not null default '[]',
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint rule_set_pkey primary key (one),
    constraint rule_set_one check (one),
    constraint rule_set_rules_array check (jsonb_typeof(rules) = 'array')
);
comment on table rule_set is 'One row: the rules, replaced as a whole.';
comment on column rule_set.one is 'Always true: there is one row.';
comment on column rule_set.rules is
    'Array of objects with name, priority, disabled, efforts, attributes, match_model, models, max_attempts.';
comment on column rule_set.created_at is 'When the database was made.';
comment on column rule_set.updated_at is 'When it was last edited.';
comment on column rule_set.updated_by is 'Name of the transaction that last edited it; sql: by hand.';
insert into rule_set default values;

create trigger provider_stamp before insert or update on provider
    for each row execute function stamp_edit();
create trigger provider_edited after insert or update or delete on provider
    for each row execute function note_edit('provider', 'provider_id');
create trigger credential_stamp before insert or update on credential
    for each row execute function stamp_edit();
create trigger credential_edited after insert or update or delete on credential
    for each row execute function note_edit('credential', 'credential_id');
create trigger model_stamp before insert or update on model
    for each row execute function stamp_edit();
create trigger model_edited after insert or update or delete on model
    for each row execute function note_edit('model', 'model_id');
create trigger model_target_edited after insert or update or delete on model_target
    for each row execute function note_edit('model', 'model_id');
create trigger rule_set_stamp before insert or update on rule_set
    for each row execute function stamp_edit();
create trigger rule_set_edited after insert or update or delete on rule_set
    for each row execute function note_edit('rule_set', '');
