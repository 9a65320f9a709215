CREATE TABLE `message_days` (
	`project_id` blob NOT NULL,
	`channel` text NOT NULL,
	`day` text NOT NULL,
	`status` text NOT NULL,
	`provider` text NOT NULL,
	`shard` integer NOT NULL,
	`messages` integer NOT NULL,
	`units` integer NOT NULL,
	PRIMARY KEY(`project_id`, `channel`, `day`, `status`, `provider`, `shard`)
);
--> statement-breakpoint
CREATE INDEX `message_days_by_day` ON `message_days` (`day`);--> statement-breakpoint
CREATE TABLE `country_hours` (
	`project_id` blob NOT NULL,
	`prefix` text NOT NULL,
	`hour` integer NOT NULL,
	`sends` integer NOT NULL,
	`most` integer NOT NULL,
	PRIMARY KEY(`project_id`, `prefix`, `hour`)
);
--> statement-breakpoint
CREATE INDEX `country_hours_by_hour` ON `country_hours` (`hour`);--> statement-breakpoint
ALTER TABLE `messages` ADD `units` integer;