-- Nothing here refers to config: usage outlives keys, models and teams.

create table usage_cursor (
    boot_id uuid not null,
    shard bigint not null,
    node text not null default '',
    last_seq bigint not null default 0,
    constraint usage_cursor_pkey primary key (boot_id, shard),
    constraint usage_cursor_last_seq_range check (last_seq >= 0)
) with (fillfactor = 50);
comment on table usage_cursor is
    'How far each shard was taken. Locked, in key order, by every transaction that takes records of it.';
comment on column usage_cursor.boot_id is 'One process of a node.';
comment on column usage_cursor.shard is 'One worker''s sequence in it.';
comment on column usage_cursor.node is 'Name of the node, a label.';
comment on column usage_cursor.last_seq is 'Everything up to and including this sequence is in the ledger, or in usage_gap.';

create table usage_gap (
    boot_id uuid not null,
    shard bigint not null,
    from_seq bigint not null,
    to_seq bigint not null,
    reason integer not null,
    seen_at timestamptz not null default turnpike_now(),
    constraint usage_gap_pkey primary key (boot_id, shard, from_seq),
    constraint usage_gap_order check (from_seq <= to_seq)
);
comment on table usage_gap is 'Records that no longer exist: loss is shown.';
comment on column usage_gap.boot_id is 'As in usage_cursor.';
comment on column usage_gap.shard is 'As in usage_cursor.';
comment on column usage_gap.from_seq is 'First lost sequence.';
comment on column usage_gap.to_seq is 'Last lost sequence.';
comment on column usage_gap.reason is 'turnpike.metering.v1.GapReason: 1 disk full, 2 torn, 3 lost.';
comment on column usage_gap.seen_at is 'When the node said so.';

create table usage_record (
    day date not null,
    boot_id uuid not null,
    shard bigint not null,
    seq bigint not null,
    admitted_at timestamptz not null,
    received_at timestamptz not null,
    decoded boolean not null,
    request_id text not null,
    team_id text not null,
    virtual_key_id text not null,
    end_user text not null,
    model text not null,
    provider_id text not null,
    status integer not null,
    ended integer not null,
    price_version bigint not null,
    attempts bigint not null,
    input_tokens bigint not null,
    cached_input_tokens bigint not null,
    cache_write_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated_attempts bigint not null,
    unpriced_attempts bigint not null,
    cost_nusd bigint not null,
    record bytea not null,
    constraint usage_record_pkey primary key (day, boot_id, shard, seq)
) partition by range (day);
create table usage_record_default partition of usage_record default;
create index usage_record_by_admission on usage_record (admitted_at, boot_id, shard, seq);
create index usage_record_by_virtual_key on usage_record (virtual_key_id, admitted_at);
create index usage_record_by_request on usage_record (request_id);
comment on table usage_record is 'One exchange each, as the node sent it. Days have partitions; what fits none is in the default one.';
comment on column usage_record.day is 'UTC day of admission.';
comment on column usage_record.boot_id is 'As in usage_cursor.';
comment on column usage_record.shard is 'As in usage_cursor.';
comment on column usage_record.seq is 'Sequence in the shard, contiguous from 1.';
comment on column usage_record.admitted_at is 'When the exchange was admitted, by the node''s clock, kept within sane bounds of received_at.';
comment on column usage_record.received_at is 'When the control plane took it.';
comment on column usage_record.decoded is 'False: the bytes are no known record; kept, and in no sum.';
comment on column usage_record.request_id is 'x-request-id.';
comment on column usage_record.team_id is 'Team of the caller.';
comment on column usage_record.virtual_key_id is 'Key of the caller.';
comment on column usage_record.end_user is 'user of the request.';
comment on column usage_record.model is 'Public model of the last attempt, or the planned one.';
comment on column usage_record.provider_id is 'Provider of the last attempt.';
comment on column usage_record.status is 'HTTP status the client got; 0: it left before one.';
comment on column usage_record.ended is 'turnpike.metering.v1.End as a number, known or not.';
comment on column usage_record.price_version is 'Price book of the costs; 0: none.';
comment on column usage_record.attempts is 'Attempts that may have reached a provider.';
comment on column usage_record.input_tokens is 'Over all attempts; cached input and cache writes included.';
comment on column usage_record.cached_input_tokens is 'Of input_tokens, read from a cache.';
comment on column usage_record.cache_write_tokens is 'Of input_tokens, written to a cache.';
comment on column usage_record.output_tokens is 'Over all attempts; reasoning included.';
comment on column usage_record.reasoning_tokens is 'Of output_tokens, reasoning.';
comment on column usage_record.estimated_attempts is 'Attempts whose tokens are estimates.';
comment on column usage_record.unpriced_attempts is 'Attempts with tokens of which some have no price.';
comment on column usage_record.cost_nusd is 'Nano-USD over everything that has a price.';
comment on column usage_record.record is 'The encoded turnpike.metering.v1.UsageRecord.';

create table usage_rollup (
    slot timestamptz not null,
    team_id text not null,
    virtual_key_id text not null,
    rule text not null,
    model text not null,
    provider_id text not null,
    upstream_model text not null,
    estimated boolean not null,
    price_version bigint not null,
    requests bigint not null,
    attempts bigint not null,
    input_tokens bigint not null,
    cached_input_tokens bigint not null,
    cache_write_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated_attempts bigint not null,
    unpriced_attempts bigint not null,
    cost_nusd bigint not null,
    constraint usage_rollup_pkey primary key
        (slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model, estimated, price_version)
) with (fillfactor = 70);
comment on table usage_rollup is
    'Sums over 15 minutes of admission, written in the transaction of their records. Texts are empty where there is none.';
comment on column usage_rollup.slot is 'Start of the 15 minutes.';
comment on column usage_rollup.team_id is 'Team of the caller.';
comment on column usage_rollup.virtual_key_id is 'Key of the caller.';
comment on column usage_rollup.rule is 'Rule that matched.';
comment on column usage_rollup.model is 'Public model of the attempt.';
comment on column usage_rollup.provider_id is 'Provider of the attempt.';
comment on column usage_rollup.upstream_model is 'Model''s name there.';
comment on column usage_rollup.estimated is 'Whether the tokens are estimates.';
comment on column usage_rollup.price_version is 'Price book of the costs; 0: none.';
comment on column usage_rollup.requests is 'Exchanges whose last attempt is in this row.';
comment on column usage_rollup.attempts is 'Attempts.';
comment on column usage_rollup.input_tokens is 'As in usage_record.';
comment on column usage_rollup.cached_input_tokens is 'As in usage_record.';
comment on column usage_rollup.cache_write_tokens is 'As in usage_record.';
comment on column usage_rollup.output_tokens is 'As in usage_record.';
comment on column usage_rollup.reasoning_tokens is 'As in usage_record.';
comment on column usage_rollup.estimated_attempts is 'As in usage_record.';
comment on column usage_rollup.unpriced_attempts is 'As in usage_record.';
comment on column usage_rollup.cost_nusd is 'As in usage_record.';

-- Sums stop at the largest number: one absurd report must not hold up a shard for ever.
create function saturating_add(a bigint, b bigint) returns bigint
    language sql immutable parallel safe
    return least(a::numeric + b::numeric, 9223372036854775807)::bigint;
comment on function saturating_add(bigint, bigint) is 'Sum of two numbers that are not negative, at most 2^63 - 1.';

-- A day whose records went to the default partition stays there: moving them is not worth a lock.
create function make_usage_partitions(first_day date, days integer) returns void
language plpgsql as $$
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
comment on function make_usage_partitions(date, integer) is 'Makes the partitions of usage_record for some days, where they are missing.';
