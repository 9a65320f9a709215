CREATE TABLE `general_bounces` (
	`project_id` blob NOT NULL,
	`address` text NOT NULL,
	`first_at` integer NOT NULL,
	`latest_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `address`)
);
--> statement-breakpoint
CREATE INDEX `general_bounces_by_time` ON `general_bounces` (`latest_at`);--> statement-breakpoint
ALTER TABLE `suppressions` ADD `diagnostic` text;