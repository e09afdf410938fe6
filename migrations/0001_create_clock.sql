-- The one clock of the control plane. A test moves it for its own session or database:
--   alter database d set turnpike.clock_offset = '2 hours';
create function turnpike_now() returns timestamptz
    language sql volatile parallel safe
    return clock_timestamp()
        + coalesce(nullif(current_setting('turnpike.clock_offset', true), ''), '0')::interval;
comment on function turnpike_now() is
    'The time of everything that is stored; turnpike.clock_offset moves it in tests.';
