-- The time-out is short because readers and writers queue behind a drop that waits.
create function drop_usage_partitions(before date) returns integer
language plpgsql
set lock_timeout = '1s'
as $$
declare
    old_partition name;
    dropped integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('turnpike.make_usage_partitions'));
    for old_partition in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'usage_record'::regclass and c.relname ~ '^usage_record_[0-9]{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < before
        order by c.relname
    loop
        execute format('drop table %I', old_partition);
        dropped := dropped + 1;
    end loop;
    delete from usage_record_default where ctid = any (array(
        select ctid from usage_record_default where day < before limit 50000));
    return dropped;
end
$$;
comment on function drop_usage_partitions(date) is
    'Forgets the records of days before a day, and says how many partitions went. Roll-ups, gaps and cursors stay.';
