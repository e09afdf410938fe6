create table team (
    team_id text not null collate "C",
    display_name text not null default '',
    disabled boolean not null default false,
    models text[] not null default '{}',
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint team_pkey primary key (team_id)
);
comment on table team is 'A group of keys that is billed and limited together.';
comment on column team.team_id is '1-64 characters of [a-z0-9-].';
comment on column team.display_name is 'For people.';
comment on column team.disabled is 'Keys of a disabled team are refused.';
comment on column team.models is 'Public model names or prefix/*; empty: every model.';
comment on column team.created_at is 'When it was created.';
comment on column team.updated_at is 'When it was last edited.';
comment on column team.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table virtual_key (
    virtual_key_id text not null collate "C",
    team_id text not null collate "C",
    display_name text not null default '',
    disabled boolean not null default false,
    models text[] not null default '{}',
    expires_at timestamptz,
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint virtual_key_pkey primary key (virtual_key_id),
    constraint virtual_key_team_fkey foreign key (team_id) references team (team_id)
);
create index virtual_key_by_team on virtual_key (team_id, virtual_key_id);
comment on table virtual_key is 'What a caller presents. Limits belong to its id, not to a secret.';
comment on column virtual_key.virtual_key_id is '1-64 characters of [a-z0-9-].';
comment on column virtual_key.team_id is 'The team that owns it; fixed at creation.';
comment on column virtual_key.display_name is 'For people.';
comment on column virtual_key.disabled is 'A disabled key is refused, as an unknown one is.';
comment on column virtual_key.models is 'Public model names or prefix/*; empty: whatever the team may use.';
comment on column virtual_key.expires_at is 'After this moment every secret is refused; null: never.';
comment on column virtual_key.created_at is 'When it was created.';
comment on column virtual_key.updated_at is 'When it was last edited.';
comment on column virtual_key.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table key_secret (
    virtual_key_id text not null collate "C",
    position smallint not null,
    sha256 bytea not null,
    hint text not null,
    expires_at timestamptz,
    created_at timestamptz not null default turnpike_now(),
    constraint key_secret_pkey primary key (virtual_key_id, position),
    constraint key_secret_virtual_key_fkey foreign key (virtual_key_id)
        references virtual_key (virtual_key_id) on delete cascade,
    constraint key_secret_sha256_unique unique (sha256),
    constraint key_secret_sha256_length check (octet_length(sha256) = 32),
    constraint key_secret_position_range check (position between 1 and 3)
);
comment on table key_secret is 'The secrets accepted for a key: hashes only.';
comment on column key_secret.virtual_key_id is 'The key it opens.';
comment on column key_secret.position is '1 to 3.';
comment on column key_secret.sha256 is 'SHA-256 over the whole secret as the client sends it.';
comment on column key_secret.hint is 'First characters of the secret, enough to recognise it.';
comment on column key_secret.expires_at is 'After this moment the secret is refused; null: with its key.';
comment on column key_secret.created_at is 'When it was made or imported.';

create trigger team_stamp before insert or update on team
    for each row execute function stamp_edit();
create trigger team_edited after insert or update or delete on team
    for each row execute function note_edit('team', 'team_id');
create trigger virtual_key_stamp before insert or update on virtual_key
    for each row execute function stamp_edit();
create trigger virtual_key_edited after insert or update or delete on virtual_key
    for each row execute function note_edit('virtual_key', 'virtual_key_id');
create trigger key_secret_edited after insert or update or delete on key_secret
    for each row execute function note_edit('virtual_key', 'virtual_key_id');
