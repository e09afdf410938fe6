//! The schema: migrated once, by whoever comes first, and never backwards.

use control_plane_store::{Error, Store};
use sqlx::Row as _;

use crate::database::{TestDatabase, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_start_together_migrate_once() {
    let database = TestDatabase::empty().await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let store = database.replica().await;
        tasks.push(tokio::spawn(async move {
            store.migrate().await.unwrap();
            store.publish_pending().await.unwrap().version
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), 1);
    }
    let applied = "select count(*) from _sqlx_migrations";
    let before = database.number(applied).await;
    database.store.migrate().await.unwrap();
    assert_eq!(database.number(applied).await, before);
    database.drop().await;
}

#[tokio::test]
async fn a_schema_of_a_newer_release_is_refused_by_its_number() {
    let database = TestDatabase::new().await;
    database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (9999, 'from the future', true, '\\x00', 0)",
        )
        .await;
    let store = Store::connect(options(database.url())).await.unwrap();
    let error = store.migrate().await.unwrap_err();
    assert!(
        matches!(error, Error::NewerSchema { found: 9999, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("9999"));
    database.drop().await;
}

#[tokio::test]
async fn every_table_and_column_says_what_it_is() {
    let database = TestDatabase::new().await;
    let silent = sqlx::query(
        "select c.relname || coalesce('.' || a.attname, '') as name
         from pg_class c
         left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition and c.relname <> '_sqlx_migrations'
           and (col_description(c.oid, a.attnum) is null or obj_description(c.oid, 'pg_class') is null)",
    )
    .fetch_all(&database.sql)
    .await
    .unwrap();
    let silent: Vec<String> = silent.iter().map(|row| row.get("name")).collect();
    assert!(silent.is_empty(), "{silent:?}");
    database.drop().await;
}

/// What a schema consists of, one line each.
const SHAPE: &str = "
    select format('column %s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0
      and c.relname <> '_sqlx_migrations'
    union all
    select format('constraint %s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
    where connamespace = 'public'::regnamespace and conrelid::regclass::text <> '_sqlx_migrations'
      and contype <> 'n'
    union all
    select format('index %s', indexdef) from pg_indexes
    where schemaname = 'public' and tablename <> '_sqlx_migrations'
    union all
    select format('trigger %s', pg_get_triggerdef(oid)) from pg_trigger where not tgisinternal
    union all
    select format('function %s', pg_get_functiondef(oid)) from pg_proc
    where pronamespace = 'public'::regnamespace
    union all
    select format('comment %s %s %s', c.relname, o.objsubid, o.description)
    from pg_description o join pg_class c on c.oid = o.objoid
    where c.relnamespace = 'public'::regnamespace
    order by 1";

#[tokio::test]
async fn the_migrations_make_the_schema_that_is_written_down() {
    let migrated = TestDatabase::new().await;
    let written = TestDatabase::empty().await;
    written
        .execute(include_str!("../../../../migrations/schema.sql"))
        .await;
    let shape = async |database: &TestDatabase| -> Vec<String> {
        let mut connection = database.sql.acquire().await.unwrap();
        sqlx::raw_sql("set search_path = public")
            .execute(&mut *connection)
            .await
            .unwrap();
        sqlx::query_scalar(SHAPE)
            .fetch_all(&mut *connection)
            .await
            .unwrap()
    };
    let (migrated_shape, written_shape) = (shape(&migrated).await, shape(&written).await);
    assert!(migrated_shape.len() > 200);
    for line in &migrated_shape {
        assert!(written_shape.contains(line), "schema.sql lacks: {line}");
    }
    for line in &written_shape {
        assert!(migrated_shape.contains(line), "only schema.sql has: {line}");
    }
    migrated.drop().await;
    written.drop().await;
}
