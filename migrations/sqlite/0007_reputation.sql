CREATE TABLE `complaint_holds` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`dimension` text NOT NULL,
	`name` text NOT NULL,
	`held_at` integer,
	`complaint_rate` text NOT NULL,
	`window_start` integer,
	`base` text,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `complaint_holds_by_name` ON `complaint_holds` (`project_id`,`dimension`,`name`);--> statement-breakpoint
CREATE INDEX `complaint_holds_by_account` ON `complaint_holds` (`account_id`);--> statement-breakpoint
CREATE TABLE `reputation_hours` (
	`account_id` blob NOT NULL,
	`dimension` text NOT NULL,
	`name` text NOT NULL,
	`hour` integer NOT NULL,
	`project_id` blob NOT NULL,
	`shard` integer NOT NULL,
	`sent` integer NOT NULL,
	`delivered` integer NOT NULL,
	`bounced` integer NOT NULL,
	`complained` integer NOT NULL,
	PRIMARY KEY(`account_id`, `dimension`, `name`, `hour`, `project_id`, `shard`)
);
--> statement-breakpoint
CREATE INDEX `reputation_hours_by_hour` ON `reputation_hours` (`hour`,`account_id`);--> statement-breakpoint
CREATE INDEX `reputation_hours_complained` ON `reputation_hours` (`account_id`,`hour`) WHERE complained > 0;--> statement-breakpoint
ALTER TABLE `accounts` ADD `reputation` text;