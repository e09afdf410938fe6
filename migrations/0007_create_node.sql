create table node (
    boot_id uuid not null,
    name text not null,
    envoy_version text not null,
    connected boolean not null,
    acked_version bigint not null,
    connected_at timestamptz not null,
    last_seen_at timestamptz not null,
    rejected text[] not null,
    constraint node_pkey primary key (boot_id)
) with (fillfactor = 50);
comment on table node is 'Processes of nodes as replicas last saw them.';
comment on column node.boot_id is 'One process of an Envoy.';
comment on column node.name is 'A label; several processes may carry the same.';
comment on column node.envoy_version is 'For example 1.40.0.';
comment on column node.connected is 'Whether a replica holds its config stream.';
comment on column node.acked_version is 'Newest config version it runs.';
comment on column node.connected_at is 'When its stream was opened.';
comment on column node.last_seen_at is 'Last sign of life.';
comment on column node.rejected is 'Resources it refused, as kind/id: reason.';
