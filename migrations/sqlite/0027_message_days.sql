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
CREATE INDEX `message_days_by_day` ON `message_days` (`day`);