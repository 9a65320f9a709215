CREATE TABLE `ai_calls` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`action` text NOT NULL,
	`period` text NOT NULL,
	`held_micro` integer NOT NULL,
	`lease_until` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `ai_calls_by_lease` ON `ai_calls` (`lease_until`);--> statement-breakpoint
CREATE TABLE `ai_instance_spending` (
	`period` text PRIMARY KEY NOT NULL,
	`spent_micro` integer NOT NULL,
	`held_micro` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `ai_quotas` (
	`account_id` blob NOT NULL,
	`period` text NOT NULL,
	`action` text NOT NULL,
	`used` integer NOT NULL,
	PRIMARY KEY(`account_id`, `period`, `action`)
);
--> statement-breakpoint
CREATE INDEX `ai_quotas_by_period` ON `ai_quotas` (`period`);--> statement-breakpoint
CREATE TABLE `ai_spending` (
	`project_id` blob NOT NULL,
	`period` text NOT NULL,
	`action` text NOT NULL,
	`count` integer NOT NULL,
	`spent_micro` integer NOT NULL,
	`held_micro` integer NOT NULL,
	PRIMARY KEY(`project_id`, `period`, `action`)
);
--> statement-breakpoint
CREATE INDEX `ai_spending_by_period` ON `ai_spending` (`period`);