-- Who holds how much of what. Locked in this order, and in key order within a table: node_boot,
-- usage_cursor, limit_bucket (by bucket_id), limit_lease.

create table node_boot (
    boot_id uuid not null,
    node text not null,
    epoch bigint not null,
    standing text not null,
    draining boolean not null,
    expires_at timestamptz not null,
    constraint node_boot_pkey primary key (boot_id),
    constraint node_boot_epoch_positive check (epoch > 0),
    constraint node_boot_standing_known check (standing in ('live', 'lost', 'closed'))
) with (fillfactor = 50);
comment on table node_boot is 'Processes of nodes that hold leases.';
comment on column node_boot.boot_id is 'One process of an Envoy.';
comment on column node_boot.node is 'Name of the node, a label.';
comment on column node_boot.epoch is 'Rises when the process is fenced; its credit belongs to an epoch.';
comment on column node_boot.standing is 'live; lost: its beats stopped; closed: it holds nothing any more.';
comment on column node_boot.draining is 'It shuts down: it gets no more than what a waiting request lacks.';
comment on column node_boot.expires_at is 'From then on it may be fenced.';

create table lease_clock (
    one boolean not null default true,
    ticked_at timestamptz not null default turnpike_now(),
    ticks bigint not null default 0,
    fence_not_before timestamptz not null default turnpike_now(),
    constraint lease_clock_pkey primary key (one),
    constraint lease_clock_one check (one)
) with (fillfactor = 50);
comment on table lease_clock is 'One row: that beats can be stored. Every replica moves it about once a second.';
comment on column lease_clock.one is 'Always true: there is one row.';
comment on column lease_clock.ticked_at is 'When it was last moved.';
comment on column lease_clock.ticks is 'Rises by one each time; a replica that finds less than it has written is on an older database.';
comment on column lease_clock.fence_not_before is 'After a time in which nothing could be stored nobody is fenced before this.';
insert into lease_clock default values;

create table limit_bucket (
    bucket_id bigint not null generated always as identity,
    limit_id text not null collate "C",
    subject text not null collate "C",
    window_start timestamptz not null,
    window_end timestamptz,
    amount bigint not null,
    settled bigint not null default 0,
    held bigint not null default 0,
    suspended bigint not null default 0,
    constraint limit_bucket_pkey primary key (bucket_id),
    constraint limit_bucket_unique unique (limit_id, subject, window_start),
    constraint limit_bucket_parts_range check (amount >= 0 and held >= 0 and suspended >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index limit_bucket_by_end on limit_bucket (window_end);
comment on table limit_bucket is
    'One limit''s account for one subject in one window, in the limit''s unit. Credit is granted while settled + held + suspended <= amount.';
comment on column limit_bucket.bucket_id is 'The order in which buckets are locked.';
comment on column limit_bucket.limit_id is 'As in limit_definition; buckets outlive it.';
comment on column limit_bucket.subject is 'Empty for everything; else team or key id, or team/user.';
comment on column limit_bucket.window_start is '1970 for rates, in-flight and lifetime.';
comment on column limit_bucket.window_end is 'Null: never ends.';
comment on column limit_bucket.amount is 'Of the limit as last published.';
comment on column limit_bucket.settled is 'Charged by records, moved by corrections.';
comment on column limit_bucket.held is 'Sum of what is outstanding over leases that are not lost.';
comment on column limit_bucket.suspended is 'Sum of what is outstanding over lost leases.';

create table limit_lease (
    bucket_id bigint not null,
    boot_id uuid not null,
    epoch bigint not null,
    granted bigint not null default 0,
    consumed bigint not null default 0,
    returned bigint not null default 0,
    unaccounted bigint not null default 0,
    lost_at timestamptz,
    wanted_at timestamptz,
    constraint limit_lease_pkey primary key (bucket_id, boot_id, epoch),
    constraint limit_lease_bucket_fkey foreign key (bucket_id)
        references limit_bucket (bucket_id) on delete cascade,
    constraint limit_lease_totals_range
        check (granted >= 0 and consumed >= 0 and returned >= 0 and unaccounted >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index limit_lease_by_boot on limit_lease (boot_id, epoch);
-- Of columns that hardly move: a total in an index, or in its condition, would end HOT updates.
create index limit_lease_lost on limit_lease (lost_at) where lost_at is not null;
create index limit_lease_unaccounted on limit_lease (bucket_id) where unaccounted > 0;
comment on table limit_lease is
    'What one process holds of a bucket in one epoch. Totals only rise; outstanding is greatest(0, granted - consumed - returned).';
comment on column limit_lease.bucket_id is 'The bucket.';
comment on column limit_lease.boot_id is 'The process. Not of node_boot only: late records may name one that is forgotten.';
comment on column limit_lease.epoch is 'Its epoch; a fenced process comes back with another, and this row keeps its debts.';
comment on column limit_lease.granted is 'Lent.';
comment on column limit_lease.consumed is 'Charged by records.';
comment on column limit_lease.returned is 'Given back, or freed.';
comment on column limit_lease.unaccounted is 'Lent to a lost process and so far in no record, once it is written down as such.';
comment on column limit_lease.lost_at is 'When its process was fenced; null: it was not.';
comment on column limit_lease.wanted_at is 'When more was last asked for; null: never.';

create table limit_recall (
    bucket_id bigint not null,
    keep bigint not null,
    marked_at timestamptz not null,
    constraint limit_recall_pkey primary key (bucket_id),
    constraint limit_recall_bucket_fkey foreign key (bucket_id)
        references limit_bucket (bucket_id) on delete cascade
);
comment on table limit_recall is 'Buckets whose idle credit is wanted back. Few, and gone after a minute.';
comment on column limit_recall.bucket_id is 'The bucket.';
comment on column limit_recall.keep is 'Idle credit up to this may be kept by each holder.';
comment on column limit_recall.marked_at is 'When it was asked for.';

create table limit_adjustment (
    limit_adjustment_id bigint not null generated always as identity,
    bucket_id bigint not null,
    delta bigint not null,
    reason text not null,
    actor text not null,
    made_at timestamptz not null default turnpike_now(),
    constraint limit_adjustment_pkey primary key (limit_adjustment_id),
    constraint limit_adjustment_bucket_fkey foreign key (bucket_id)
        references limit_bucket (bucket_id) on delete cascade
);
create index limit_adjustment_by_bucket on limit_adjustment (bucket_id);
comment on table limit_adjustment is 'Corrections of what is settled. Rows are never changed.';
comment on column limit_adjustment.limit_adjustment_id is 'In the order in which they were made.';
comment on column limit_adjustment.bucket_id is 'The bucket.';
comment on column limit_adjustment.delta is 'Added to settled; negative gives room back.';
comment on column limit_adjustment.reason is 'Why.';
comment on column limit_adjustment.actor is 'Who.';
comment on column limit_adjustment.made_at is 'When.';
