CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`plan` text NOT NULL,
	`status` text NOT NULL,
	`sending_status` text NOT NULL,
	`sending_status_reason` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `instance_values` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`lookup` text NOT NULL,
	`key_hash` text NOT NULL,
	`prefix` text NOT NULL,
	`last4` text NOT NULL,
	`scopes` text NOT NULL,
	`ip_addresses` text NOT NULL,
	`created_by` text NOT NULL,
	`expires_at` integer,
	`last_used_at` integer,
	`last_used_ip` text,
	`created_at` integer NOT NULL,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_by_lookup` ON `api_keys` (`lookup`);--> statement-breakpoint
CREATE INDEX `api_keys_by_project` ON `api_keys` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `events` (
	`id` text PRIMARY KEY NOT NULL,
	`position` integer DEFAULT 0 NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`subject_id` text,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`detail` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `events_by_project` ON `events` (`project_id`,`position`,`id`);--> statement-breakpoint
CREATE INDEX `events_by_subject` ON `events` (`subject_id`,`id`);--> statement-breakpoint
CREATE TABLE `idempotency` (
	`request` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer NOT NULL,
	`answer` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `idempotency_by_age` ON `idempotency` (`created_at`);--> statement-breakpoint
CREATE TABLE `mailbox_mails` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`account_id` text NOT NULL,
	`email_id` text,
	`mail_from` text NOT NULL,
	`recipients` text NOT NULL,
	`to_address` text NOT NULL,
	`from_address` text NOT NULL,
	`subject` text NOT NULL,
	`subject_key` text NOT NULL,
	`raw` blob NOT NULL,
	`size` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mailbox_mails_by_project` ON `mailbox_mails` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `mailbox_recipients` (
	`mail_id` text NOT NULL,
	`project_id` text NOT NULL,
	`address` text NOT NULL,
	PRIMARY KEY(`mail_id`, `address`),
	FOREIGN KEY (`mail_id`) REFERENCES `mailbox_mails`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `mailbox_recipients_by_address` ON `mailbox_recipients` (`project_id`,`address`,`mail_id`);--> statement-breakpoint
CREATE TABLE `attempts` (
	`message_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`provider` text NOT NULL,
	`started_at` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`outcome` text NOT NULL,
	`mx` text,
	`tls` text,
	`smtp_code` integer,
	`enhanced_code` text,
	`response` text,
	`transcript` text NOT NULL,
	PRIMARY KEY(`message_id`, `attempt`)
);
--> statement-breakpoint
CREATE TABLE `message_contents` (
	`message_id` text PRIMARY KEY NOT NULL,
	`content` text NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `message_raws` (
	`message_id` text PRIMARY KEY NOT NULL,
	`raw` blob NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `message_tags` (
	`project_id` text NOT NULL,
	`tag` text NOT NULL,
	`message_id` text NOT NULL,
	PRIMARY KEY(`project_id`, `tag`, `message_id`)
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`channel` text NOT NULL,
	`status` text NOT NULL,
	`status_reason` text,
	`recipient` text NOT NULL,
	`sender` text,
	`sender_domain` text,
	`subject` text,
	`subject_key` text,
	`recipients` text NOT NULL,
	`envelope` text,
	`batch_id` text,
	`stream` text NOT NULL,
	`source` text NOT NULL,
	`tags` text NOT NULL,
	`metadata` text NOT NULL,
	`api_key_id` text,
	`idempotency_key` text,
	`rfc_message_id` text,
	`sandbox` integer NOT NULL,
	`provider` text,
	`attempts` integer NOT NULL,
	`next_attempt_at` integer,
	`error` text,
	`last_event_type` text,
	`last_event_at` integer,
	`queued_at` integer,
	`sent_at` integer,
	`delivered_at` integer,
	`bounced_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `messages_by_project` ON `messages` (`project_id`,`channel`,`id`);--> statement-breakpoint
CREATE INDEX `messages_by_status` ON `messages` (`project_id`,`status`,`id`);--> statement-breakpoint
CREATE INDEX `messages_by_recipient` ON `messages` (`project_id`,`recipient`,`id`);--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_by_slug` ON `projects` (`account_id`,`slug`);--> statement-breakpoint
CREATE TABLE `counters` (
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`shard` integer NOT NULL,
	`value` integer NOT NULL,
	PRIMARY KEY(`project_id`, `name`, `shard`)
);
--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`project_id` text,
	`payload` text NOT NULL,
	`state` integer NOT NULL,
	`priority` integer NOT NULL,
	`run_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`last_error` text,
	`created_at` integer NOT NULL,
	`dead_at` integer
);
--> statement-breakpoint
CREATE INDEX `jobs_ready` ON `jobs` (`priority`,`run_at`,`id`) WHERE state = 0;--> statement-breakpoint
CREATE INDEX `jobs_leased` ON `jobs` (`lease_until`) WHERE state = 1;--> statement-breakpoint
CREATE INDEX `jobs_dead` ON `jobs` (`dead_at`) WHERE state = 2;