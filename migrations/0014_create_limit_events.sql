-- What operators are told about limits.

create table limit_event (
    limit_event_id uuid not null default gen_random_uuid(),
    bucket_id bigint not null,
    threshold integer not null,
    settled bigint not null,
    amount bigint not null,
    raised_at timestamptz not null default turnpike_now(),
    tries integer not null default 0,
    try_at timestamptz not null default turnpike_now(),
    delivered_at timestamptz,
    constraint limit_event_pkey primary key (limit_event_id),
    constraint limit_event_unique unique (bucket_id, threshold),
    constraint limit_event_bucket_fkey foreign key (bucket_id)
        references limit_bucket (bucket_id) on delete cascade
);
create index limit_event_due on limit_event (try_at) where delivered_at is null;
comment on table limit_event is 'Buckets that have passed a threshold of their limit, each told once.';
comment on column limit_event.limit_event_id is 'Names the event to whoever is told; the same at each try.';
comment on column limit_event.bucket_id is 'The bucket.';
comment on column limit_event.threshold is 'Percent of the amount.';
comment on column limit_event.settled is 'Of the bucket, when it was seen to have passed.';
comment on column limit_event.amount is 'Of the bucket, when it was seen to have passed.';
comment on column limit_event.raised_at is 'When it was seen to have passed.';
comment on column limit_event.tries is 'How often a delivery was begun.';
comment on column limit_event.try_at is 'When the next one is due, unless it is delivered.';
comment on column limit_event.delivered_at is 'When its receiver took it; null: not yet, or nobody is to be told.';
