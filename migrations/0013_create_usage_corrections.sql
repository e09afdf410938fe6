create table usage_reprice (
    usage_reprice_id bigint generated always as identity,
    request_id text,
    request jsonb not null,
    answer jsonb not null,
    price_version bigint not null,
    reason text not null,
    actor text not null,
    created_at timestamptz not null default turnpike_now(),
    constraint usage_reprice_pkey primary key (usage_reprice_id),
    constraint usage_reprice_request_unique unique (request_id)
);
comment on table usage_reprice is
    'Every time that usage was priced anew. Locked against each other, so that each sees the corrections of those before.';
comment on column usage_reprice.usage_reprice_id is 'Rises with time.';
comment on column usage_reprice.request_id is 'Chosen by the caller, so that a repeated request changes nothing; null: none was.';
comment on column usage_reprice.request is 'What was asked for.';
comment on column usage_reprice.answer is 'What was answered.';
comment on column usage_reprice.price_version is 'Price book that was used; 0: none.';
comment on column usage_reprice.reason is 'Why, in the words of who did it.';
comment on column usage_reprice.actor is 'Who did it.';
comment on column usage_reprice.created_at is 'When.';

create table usage_correction (
    slot timestamptz not null,
    team_id text not null,
    virtual_key_id text not null,
    rule text not null,
    model text not null,
    provider_id text not null,
    upstream_model text not null,
    estimated boolean not null,
    price_version bigint not null,
    usage_reprice_id bigint not null,
    delta_nusd bigint not null,
    priced_attempts bigint not null,
    constraint usage_correction_pkey primary key
        (slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model, estimated, price_version,
         usage_reprice_id),
    constraint usage_correction_reprice_fkey foreign key (usage_reprice_id) references usage_reprice
);
comment on table usage_correction is
    'What is to be added to a row of usage_rollup, which itself is never edited. Rows are never changed; limits are not moved by them.';
comment on column usage_correction.slot is 'As in usage_rollup, as the next eight are: they name the row.';
comment on column usage_correction.team_id is 'As in usage_rollup.';
comment on column usage_correction.virtual_key_id is 'As in usage_rollup.';
comment on column usage_correction.rule is 'As in usage_rollup.';
comment on column usage_correction.model is 'As in usage_rollup.';
comment on column usage_correction.provider_id is 'As in usage_rollup.';
comment on column usage_correction.upstream_model is 'As in usage_rollup.';
comment on column usage_correction.estimated is 'As in usage_rollup.';
comment on column usage_correction.price_version is 'As in usage_rollup: the price book that was booked with.';
comment on column usage_correction.usage_reprice_id is 'What it belongs to, with the price book that it was computed with.';
comment on column usage_correction.delta_nusd is 'Nano-USD to be added; negative: to be taken off.';
comment on column usage_correction.priced_attempts is 'Attempts to be taken off unpriced_attempts.';
