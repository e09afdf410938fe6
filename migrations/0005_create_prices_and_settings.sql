create table price_book (
    version bigint not null,
    prices jsonb not null,
    created_at timestamptz not null default turnpike_now(),
    created_by text not null default 'sql',
    constraint price_book_pkey primary key (version),
    constraint price_book_version_positive check (version > 0),
    constraint price_book_prices_array check (jsonb_typeof(prices) = 'array')
);
comment on table price_book is 'Every version of the price book; the highest holds. Rows are never changed.';
comment on column price_book.version is 'Rises by one with each change.';
comment on column price_book.prices is
    'Array of objects with provider, upstream_model, effective_from_s, and integer pico-USD per token by class; a missing class is unknown.';
comment on column price_book.created_at is 'When it was written.';
comment on column price_book.created_by is 'Name of the transaction that wrote it; sql: by hand.';

create table settings (
    one boolean not null default true,
    setting jsonb not null default '{}',
    created_at timestamptz not null default turnpike_now(),
    updated_at timestamptz not null default turnpike_now(),
    updated_by text not null default 'sql',
    constraint settings_pkey primary key (one),
    constraint settings_one check (one),
    constraint settings_setting_object check (jsonb_typeof(setting) = 'object')
);
comment on table settings is 'One row: the settings of the whole deployment.';
comment on column settings.one is 'Always true: there is one row.';
comment on column settings.setting is 'Fields of turnpike.config.v1.Settings by name; a missing or zero one has its default.';
comment on column settings.created_at is 'When the database was made.';
comment on column settings.updated_at is 'When it was last edited.';
comment on column settings.updated_by is 'Name of the transaction that last edited it; sql: by hand.';

create trigger price_book_edited after insert or update or delete on price_book
    for each row execute function note_edit('price_book', '');
create trigger settings_stamp before insert or update on settings
    for each row execute function stamp_edit();
create trigger settings_edited after insert or update or delete on settings
    for each row execute function note_edit('settings', '');

-- After the triggers, so that the defaults are published too.
insert into settings default values;
