-- Spark SQL: one row a pair, the last rating of each, in parts sorted by user and item; and the catalogues with their counts.
CREATE OR REPLACE TEMPORARY VIEW ratings AS
SELECT user_id AS `user`, item_id AS item, max_by(rating, rated_at) AS rating
FROM events
WHERE rating IS NOT NULL
GROUP BY user_id, item_id;

CREATE TABLE ratings_sorted USING parquet LOCATION 'ratings' AS
SELECT `user`, item, rating FROM ratings ORDER BY `user`, item;

CREATE TABLE users USING parquet LOCATION 'users' AS
SELECT `user`, count(*) AS n FROM ratings GROUP BY `user` ORDER BY `user`;

CREATE TABLE items USING parquet LOCATION 'items' AS
SELECT item, count(*) AS n FROM ratings GROUP BY item ORDER BY item;
