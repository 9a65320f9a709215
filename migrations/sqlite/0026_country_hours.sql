CREATE TABLE `country_hours` (
	`project_id` blob NOT NULL,
	`prefix` text NOT NULL,
	`hour` integer NOT NULL,
	`sends` integer NOT NULL,
	`most` integer NOT NULL,
	PRIMARY KEY(`project_id`, `prefix`, `hour`)
);
--> statement-breakpoint
CREATE INDEX `country_hours_by_hour` ON `country_hours` (`hour`);