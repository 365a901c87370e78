-- DuckDB: one row a pair, the last rating of each, in parts sorted by user and item; and the catalogues with their counts.
CREATE TEMP TABLE ratings AS
SELECT user_id AS "user", item_id AS item, arg_max(rating, rated_at) AS rating
FROM read_parquet('events/*.parquet')
WHERE rating IS NOT NULL
GROUP BY user_id, item_id;

COPY (SELECT "user", item, rating FROM ratings ORDER BY "user", item)
TO 'ratings' (FORMAT parquet, ROW_GROUP_SIZE 1000000, FILE_SIZE_BYTES '512MB');

COPY (SELECT "user", count(*) AS n FROM ratings GROUP BY "user" ORDER BY "user")
TO 'users.parquet' (FORMAT parquet);

COPY (SELECT item, count(*) AS n FROM ratings GROUP BY item ORDER BY item)
TO 'items.parquet' (FORMAT parquet);
