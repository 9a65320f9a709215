CREATE TABLE `devices` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`device_id` text NOT NULL,
	`scope` text NOT NULL,
	`user_id` text,
	`platform` text NOT NULL,
	`provider` text NOT NULL,
	`token` text NOT NULL,
	`token_hash` text NOT NULL,
	`keys` text,
	`device_name` text,
	`app_id` text,
	`app_version` text,
	`os_version` text,
	`locale` text,
	`timezone` text,
	`apns_environment` text,
	`status` text NOT NULL,
	`status_reason` text,
	`failure_count` integer NOT NULL,
	`metadata` text NOT NULL,
	`token_at` integer NOT NULL,
	`last_active_at` integer NOT NULL,
	`last_success_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `devices_by_project` ON `devices` (`project_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `devices_by_name` ON `devices` (`project_id`,`device_id`,`scope`);--> statement-breakpoint
CREATE UNIQUE INDEX `devices_by_token` ON `devices` (`project_id`,`scope`,`token_hash`);--> statement-breakpoint
CREATE INDEX `devices_by_user` ON `devices` (`project_id`,`user_id`,`id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `push_acks` (
	`message_id` blob NOT NULL,
	`event` text NOT NULL,
	`project_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`message_id`, `event`)
);
--> statement-breakpoint
CREATE TABLE `push_days` (
	`project_id` blob NOT NULL,
	`day` text NOT NULL,
	`fact` text NOT NULL,
	`shard` integer NOT NULL,
	`messages` integer NOT NULL,
	PRIMARY KEY(`project_id`, `day`, `fact`, `shard`)
);
--> statement-breakpoint
CREATE INDEX `push_days_by_day` ON `push_days` (`day`);--> statement-breakpoint
ALTER TABLE `messages` ADD `user_id` text;--> statement-breakpoint
CREATE INDEX `messages_by_user` ON `messages` (`project_id`,`user_id`,`id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `messages_held_until` ON `messages` (`lease_until`) WHERE state = 3 AND lease_until IS NOT NULL;