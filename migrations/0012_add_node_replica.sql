alter table node add column replica text not null default '';
comment on column node.replica is
    'The control plane that wrote this, by host and address: when it starts anew, its nodes are not connected any more. Empty: unknown.';
