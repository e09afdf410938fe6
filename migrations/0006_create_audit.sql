create table audit_entry (
    audit_entry_id bigint not null generated always as identity,
    occurred_at timestamptz not null default turnpike_now(),
    actor text not null,
    method text not null,
    resource text not null,
    config_version bigint not null,
    state text not null default '',
    constraint audit_entry_pkey primary key (audit_entry_id)
);
create index audit_entry_by_config_version on audit_entry (config_version);
comment on table audit_entry is 'What was changed, written in the transaction that changed it. Rows are never changed.';
comment on column audit_entry.audit_entry_id is 'In commit order: written under the lock on config_state.';
comment on column audit_entry.occurred_at is 'When.';
comment on column audit_entry.actor is 'Who, for example admin-token; publisher: rows edited past the API were published.';
comment on column audit_entry.method is 'The RPC, for example CreateVirtualKey.';
comment on column audit_entry.resource is 'Resource name.';
comment on column audit_entry.config_version is 'The config version that holds the change.';
comment on column audit_entry.state is 'The resource after the change as JSON, without secrets; empty after a deletion.';
