-- Providers of every dialect.

alter table provider drop constraint provider_dialect_known;
alter table provider add constraint provider_dialect_known
    check (dialect in ('openai', 'anthropic', 'gemini', 'converse'));
alter table provider drop constraint provider_credential_place_known;
alter table provider add constraint provider_credential_place_known
    check (credential_place in ('bearer', 'api_key', 'x_api_key', 'none', 'x_goog_api_key', 'sigv4'));
alter table provider
    add column query text not null default '',
    add column header_names text[] not null default '{}',
    add column header_values text[] not null default '{}',
    add column region text not null default '',
    add column quirks text[] not null default '{}',
    add constraint provider_headers_paired
        check (cardinality(header_names) = cardinality(header_values));
comment on column provider.dialect is 'The protocol it speaks: openai, anthropic, gemini or converse.';
comment on column provider.query is 'Query of every request, without its question mark.';
comment on column provider.header_names is 'Names of the headers that are sent with every request.';
comment on column provider.header_values is 'Their values, in the same order.';
comment on column provider.region is 'AWS region that requests are signed for.';
comment on column provider.quirks is 'In what it differs from the first of its dialect.';
