CREATE TABLE `dkim_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`domain_id` text NOT NULL,
	`selector` text NOT NULL,
	`algorithm` text NOT NULL,
	`private_key` text NOT NULL,
	`public_key` text NOT NULL,
	`state` text NOT NULL,
	`seen_at` integer,
	`retire_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`domain_id`) REFERENCES `domains`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dkim_keys_by_selector` ON `dkim_keys` (`domain_id`,`selector`,`algorithm`);--> statement-breakpoint
CREATE TABLE `domains` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`domain` text NOT NULL,
	`status` text NOT NULL,
	`verification_token` text NOT NULL,
	`receiving` integer NOT NULL,
	`tracking_subdomain` text,
	`return_path` text NOT NULL,
	`records` text NOT NULL,
	`provider_identity_status` text NOT NULL,
	`provider_dkim_status` text NOT NULL,
	`warning` text,
	`asked` text,
	`missing_since` integer,
	`last_checked_at` integer,
	`next_check_at` integer,
	`window_began_at` integer NOT NULL,
	`verified_at` integer,
	`failed_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `domains_by_name` ON `domains` (`project_id`,`domain`);--> statement-breakpoint
CREATE INDEX `domains_by_project` ON `domains` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `domains_of_everybody` ON `domains` (`domain`);--> statement-breakpoint
CREATE TABLE `mta_sts_policies` (
	`domain` text PRIMARY KEY NOT NULL,
	`policy_id` text NOT NULL,
	`mode` text NOT NULL,
	`mx` text NOT NULL,
	`fetched_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `provider_configs` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`provider` text NOT NULL,
	`name` text NOT NULL,
	`priority` integer NOT NULL,
	`enabled` integer NOT NULL,
	`status` text NOT NULL,
	`last_error` text,
	`paused_until` integer,
	`credentials` text,
	`settings` text NOT NULL,
	`callback_token_hash` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `provider_configs_by_name` ON `provider_configs` (`project_id`,`kind`,`provider`,`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `provider_configs_by_callback` ON `provider_configs` (`callback_token_hash`);--> statement-breakpoint
CREATE TABLE `provider_receipts` (
	`config_id` text NOT NULL,
	`provider_message_id` text NOT NULL,
	`project_id` text NOT NULL,
	`message_id` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`config_id`, `provider_message_id`)
);
--> statement-breakpoint
CREATE INDEX `provider_receipts_by_message` ON `provider_receipts` (`message_id`);--> statement-breakpoint
CREATE TABLE `paused_queues` (
	`queue` text PRIMARY KEY NOT NULL,
	`paused_by` text,
	`paused_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `jobs_held` ON `jobs` (`owner`,`id`) WHERE state = 3;