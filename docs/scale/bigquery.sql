-- BigQuery: one row a pair, the last rating of each, in parts sorted by user and item; and the catalogues with their counts.
CREATE TEMP TABLE ratings AS
SELECT user_id AS `user`, item_id AS item, MAX_BY(rating, rated_at) AS rating
FROM events
WHERE rating IS NOT NULL
GROUP BY user_id, item_id;

EXPORT DATA OPTIONS (uri = 'gs://BUCKET/ratings/*.parquet', format = 'PARQUET', overwrite = true) AS
SELECT `user`, item, rating FROM ratings ORDER BY `user`, item;

EXPORT DATA OPTIONS (uri = 'gs://BUCKET/users/*.parquet', format = 'PARQUET', overwrite = true) AS
SELECT `user`, COUNT(*) AS n FROM ratings GROUP BY `user` ORDER BY `user`;

EXPORT DATA OPTIONS (uri = 'gs://BUCKET/items/*.parquet', format = 'PARQUET', overwrite = true) AS
SELECT item, COUNT(*) AS n FROM ratings GROUP BY item ORDER BY item;
