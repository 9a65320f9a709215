CREATE TABLE `soft_failures` (
	`project_id` blob NOT NULL,
	`channel` text NOT NULL,
	`address` text NOT NULL,
	`message_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `channel`, `address`, `message_id`)
);
--> statement-breakpoint
CREATE INDEX `soft_failures_by_time` ON `soft_failures` (`created_at`);--> statement-breakpoint
CREATE TABLE `suppressions` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`channel` text NOT NULL,
	`address` text NOT NULL,
	`reason` text NOT NULL,
	`origin` text NOT NULL,
	`scope_type` text NOT NULL,
	`scope_key` text NOT NULL,
	`source_message_id` blob,
	`note` text,
	`expires_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `suppressions_by_address` ON `suppressions` (`project_id`,`channel`,`address`,`scope_type`,`scope_key`);--> statement-breakpoint
CREATE INDEX `suppressions_by_project` ON `suppressions` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `suppressions_by_reason` ON `suppressions` (`project_id`,`reason`,`id`);--> statement-breakpoint
CREATE INDEX `suppressions_by_origin` ON `suppressions` (`project_id`,`origin`,`id`);--> statement-breakpoint
CREATE INDEX `suppressions_by_channel` ON `suppressions` (`project_id`,`channel`,`id`);--> statement-breakpoint
CREATE INDEX `suppressions_by_expiry` ON `suppressions` (`expires_at`) WHERE expires_at is not null;