CREATE TABLE `inbox_categories` (
	`subscriber_id` blob NOT NULL,
	`category` text NOT NULL,
	`shard` integer NOT NULL,
	`unread` integer NOT NULL,
	PRIMARY KEY(`subscriber_id`, `category`, `shard`)
);
--> statement-breakpoint
CREATE TABLE `inbox_changes` (
	`subscriber_id` blob NOT NULL,
	`seq` integer NOT NULL,
	`position` integer DEFAULT 0 NOT NULL,
	`project_id` blob NOT NULL,
	`kind` text NOT NULL,
	`entry_id` blob,
	`scope` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`subscriber_id`, `seq`)
);
--> statement-breakpoint
CREATE INDEX `inbox_changes_by_position` ON `inbox_changes` (`position`);--> statement-breakpoint
CREATE INDEX `inbox_changes_by_time` ON `inbox_changes` (`created_at`);--> statement-breakpoint
CREATE TABLE `inbox_contents` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`content` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `inbox_contents_by_project` ON `inbox_contents` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `inbox_days` (
	`project_id` blob NOT NULL,
	`day` text NOT NULL,
	`fact` text NOT NULL,
	`shard` integer NOT NULL,
	`messages` integer NOT NULL,
	PRIMARY KEY(`project_id`, `day`, `fact`, `shard`)
);
--> statement-breakpoint
CREATE INDEX `inbox_days_by_day` ON `inbox_days` (`day`);--> statement-breakpoint
CREATE TABLE `inbox_entries` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob NOT NULL,
	`content_id` blob NOT NULL,
	`seq` integer NOT NULL,
	`category` text,
	`collapse_key` text,
	`seen_at` integer,
	`read_at` integer,
	`archived_at` integer,
	`snoozed_until` integer,
	`expires_at` integer,
	`wakes_at` integer,
	`completed` text,
	`told` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `inbox_entries_in_sight` ON `inbox_entries` (`subscriber_id`,`id`) WHERE archived_at IS NULL AND snoozed_until IS NULL;--> statement-breakpoint
CREATE INDEX `inbox_entries_unread` ON `inbox_entries` (`subscriber_id`,`id`) WHERE read_at IS NULL AND archived_at IS NULL AND snoozed_until IS NULL;--> statement-breakpoint
CREATE INDEX `inbox_entries_unread_aside` ON `inbox_entries` (`subscriber_id`,`id`) WHERE read_at IS NULL AND (archived_at IS NOT NULL OR snoozed_until IS NOT NULL);--> statement-breakpoint
CREATE INDEX `inbox_entries_archived` ON `inbox_entries` (`subscriber_id`,`id`) WHERE archived_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbox_entries_snoozed` ON `inbox_entries` (`subscriber_id`,`id`) WHERE snoozed_until IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbox_entries_by_key` ON `inbox_entries` (`subscriber_id`,`collapse_key`,`id`) WHERE collapse_key IS NOT NULL AND read_at IS NULL;--> statement-breakpoint
CREATE INDEX `inbox_entries_by_content` ON `inbox_entries` (`content_id`);--> statement-breakpoint
CREATE INDEX `inbox_entries_waking` ON `inbox_entries` (`wakes_at`) WHERE wakes_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `inbox_tickets` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob NOT NULL,
	`token_ends_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `inbox_tickets_by_end` ON `inbox_tickets` (`expires_at`);--> statement-breakpoint
CREATE TABLE `inboxes` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`last_seq` integer NOT NULL,
	`unread` integer NOT NULL,
	`unseen` integer NOT NULL,
	`total` integer NOT NULL
);
