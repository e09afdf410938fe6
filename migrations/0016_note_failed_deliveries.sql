alter table limit_event add column failure text not null default '';
comment on column limit_event.failure is
    'Why the last try that failed did, at most 200 characters; empty: none failed.';
create index limit_event_by_time on limit_event (raised_at, limit_event_id);
