-- What operators edit. The name avoids a reserved word.

create table limit_definition (
    limit_id text not null collate "C",
    display_name text not null default '',
    subject text not null,
    subject_id text not null default '',
    models text[] not null default '{}',
    providers text[] not null default '{}',
    rules text[] not null default '{}',
    unit text not null,
    amount bigint not null,
    limit_window text not null,
    time_zone text not null default '',
    enforcement text,
    on_exceed text,
    on_unavailable text,
    outage_allowance bigint not null default 0,
    on_unbounded text,
    burst bigint not null default 0,
    clamp boolean not null default false,
    thresholds integer[] not null default '{}',
    disabled boolean not null default false,
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint limit_definition_pkey primary key (limit_id),
    constraint limit_definition_amounts_range
        check (amount >= 0 and outage_allowance >= 0 and burst >= 0)
);
comment on table limit_definition is 'A bound on what a subject may use; see turnpike.config.v1.Limit.';
comment on column limit_definition.limit_id is '1-64 characters of [a-z0-9-].';
comment on column limit_definition.display_name is 'For people.';
comment on column limit_definition.subject is 'everything, team, key or end_user; fixed.';
comment on column limit_definition.subject_id is 'Team or key id, or team/user; empty: each one has a bucket of its own; fixed.';
comment on column limit_definition.models is 'Public model names or prefix/*; empty: all.';
comment on column limit_definition.providers is 'Provider ids; empty: all.';
comment on column limit_definition.rules is 'Rule names; empty: all, and requests that no rule matched.';
comment on column limit_definition.unit is 'requests, in_flight, tokens, input_tokens, uncached_input_tokens, output_tokens or money; fixed.';
comment on column limit_definition.amount is 'In the unit, money in nano-USD; at most 2^53.';
comment on column limit_definition.limit_window is 'none, second, minute, hour, day, week, month or lifetime; fixed.';
comment on column limit_definition.time_zone is 'IANA name; empty: UTC; fixed.';
comment on column limit_definition.enforcement is 'strict, guarded or estimated; null: the default of the unit.';
comment on column limit_definition.on_exceed is 'reject, skip_target or warn; null: reject.';
comment on column limit_definition.on_unavailable is 'reject or allow; null: reject.';
comment on column limit_definition.outage_allowance is 'In the unit, per node and outage.';
comment on column limit_definition.on_unbounded is 'reject or estimate; null: reject.';
comment on column limit_definition.burst is 'Of rates; 0: a quarter of the amount, at least 1.';
comment on column limit_definition.clamp is 'max_tokens may be lowered to what is left.';
comment on column limit_definition.thresholds is 'Percent of the amount at which an event is raised, rising.';
comment on column limit_definition.disabled is 'A disabled limit holds nobody.';
comment on column limit_definition.created_at is 'When it was created.';
comment on column limit_definition.updated_at is 'When it was last edited.';
comment on column limit_definition.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create table limit_shape (
    limit_id text not null collate "C",
    subject text not null,
    subject_id text not null,
    unit text not null,
    limit_window text not null,
    time_zone text not null,
    constraint limit_shape_pkey primary key (limit_id)
);
comment on table limit_shape is
    'What buckets of a limit count and when they begin. Buckets outlive their limit, so this does too: one that comes back under its id must be the same.';
comment on column limit_shape.limit_id is 'As in limit_definition, whether that is there or not.';
comment on column limit_shape.subject is 'As in limit_definition.';
comment on column limit_shape.subject_id is 'As in limit_definition.';
comment on column limit_shape.unit is 'As in limit_definition.';
comment on column limit_shape.limit_window is 'As in limit_definition.';
comment on column limit_shape.time_zone is 'As in limit_definition.';

-- The error names the column as its constraint.
create function keep_limit_shape() returns trigger language plpgsql as $$
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
comment on function keep_limit_shape() is 'Refuses to change what the buckets of a limit count.';

create trigger limit_definition_stamp before insert or update on limit_definition
    for each row execute function stamp_edit();
create trigger limit_definition_shape after insert or update on limit_definition
    for each row execute function keep_limit_shape();
create trigger limit_definition_edited after insert or update or delete on limit_definition
    for each row execute function note_edit('limit', 'limit_id');
comment on column published_resource.kind is
    'team, virtual_key, provider, credential, model, rule_set, price_book, limit or settings.';
