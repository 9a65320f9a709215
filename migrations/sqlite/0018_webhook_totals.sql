CREATE TABLE `webhook_hours` (
	`webhook_id` blob NOT NULL,
	`hour` integer NOT NULL,
	`name` text NOT NULL,
	`shard` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`webhook_id`, `hour`, `name`, `shard`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_hours_by_hour` ON `webhook_hours` (`hour`,`webhook_id`);--> statement-breakpoint
CREATE TABLE `webhook_totals` (
	`webhook_id` blob NOT NULL,
	`shard` integer NOT NULL,
	`project_id` blob NOT NULL,
	`deliveries` integer NOT NULL,
	`open` integer NOT NULL,
	`held` integer NOT NULL,
	PRIMARY KEY(`webhook_id`, `shard`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_totals_by_project` ON `webhook_totals` (`project_id`);--> statement-breakpoint
WITH `found` AS (
	SELECT `webhook_id`, count(*) AS `kept`, min(`id`) AS `first` FROM `webhook_deliveries` GROUP BY `webhook_id`
),
`unended` AS (
	SELECT `webhook_id`, 0 AS `held` FROM `webhook_deliveries` WHERE `state` = 0
	UNION ALL SELECT `webhook_id`, 0 FROM `webhook_deliveries` WHERE `state` = 1 AND `lease_until` IS NOT NULL
	UNION ALL SELECT `webhook_id`, 1 FROM `webhook_deliveries` WHERE `state` = 3 AND `owner` IS NULL
	UNION ALL SELECT `webhook_id`, 0 FROM `webhook_deliveries` WHERE `state` = 3 AND `owner` IS NOT NULL
),
`counted` AS (
	SELECT `webhook_id`, count(*) AS `open`, sum(`held`) AS `held` FROM `unended` GROUP BY `webhook_id`
)
INSERT INTO `webhook_totals` (`webhook_id`, `shard`, `project_id`, `deliveries`, `open`, `held`)
SELECT `found`.`webhook_id`, 0, `webhook_deliveries`.`project_id`, `kept`, coalesce(`counted`.`open`, 0), coalesce(`counted`.`held`, 0)
FROM `found`
JOIN `webhook_deliveries` ON `webhook_deliveries`.`id` = `first`
LEFT JOIN `counted` ON `counted`.`webhook_id` = `found`.`webhook_id`;
--> statement-breakpoint
WITH `bounds`(`bound`) AS (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (12), (15), (18), (22), (27), (33), (39), (47), (56), (68), (82), (100), (120), (150), (180), (220), (270), (330), (390), (470), (560), (680), (820), (1000), (1200), (1500), (1800), (2200), (2700), (3300), (3900), (4700), (5600), (6800), (8200), (10000), (12000), (15000), (18000), (22000), (27000), (33000), (39000), (47000), (56000), (68000), (82000)),
`attempts` AS (
	SELECT `webhook_deliveries`.`webhook_id` AS `webhook_id`,
		unixepoch(`entry`.`value` ->> 'at') / 3600 AS `hour`,
		coalesce(`entry`.`value` ->> 'response_status', `entry`.`value` ->> 'error') AS `answer`,
		coalesce((SELECT min(`bound`) FROM `bounds` WHERE `bound` >= `entry`.`value` ->> 'latency_ms'), 82000) AS `bound`
	FROM `webhooks`
	JOIN `webhook_deliveries` ON `webhook_deliveries`.`webhook_id` = `webhooks`.`id`
		AND `webhook_deliveries`.`id` >= unhex(printf('%012x', (unixepoch('now') - 604800) * 1000))
	JOIN json_each(`webhook_deliveries`.`attempt_log`) AS `entry`
)
INSERT INTO `webhook_hours` (`webhook_id`, `hour`, `name`, `shard`, `count`)
SELECT `webhook_id`, `hour`, `name`, 0, count(*) FROM (
	SELECT `webhook_id`, `hour`, cast(`answer` AS text) AS `name` FROM `attempts`
	UNION ALL SELECT `webhook_id`, `hour`, 'ms:' || `bound` FROM `attempts`
) WHERE `name` IS NOT NULL GROUP BY `webhook_id`, `hour`, `name`;