CREATE TABLE `request_log` (
	`id` text PRIMARY KEY NOT NULL,
	`request_id` text NOT NULL,
	`project_id` text,
	`key_id` text,
	`method` text NOT NULL,
	`path` text NOT NULL,
	`status` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`ip` text NOT NULL,
	`error_code` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `request_log_by_project` ON `request_log` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `request_log_by_request` ON `request_log` (`request_id`);--> statement-breakpoint
CREATE TABLE `deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`webhook_id` text NOT NULL,
	`event_id` text NOT NULL,
	`event_type` text NOT NULL,
	`trigger` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`max_attempts` integer NOT NULL,
	`by_hand` integer NOT NULL,
	`next_attempt_at` integer,
	`owner` text,
	`body` text,
	`url` text,
	`request_headers` text,
	`response_headers` text,
	`last_response_body` text,
	`last_response_status` integer,
	`last_error` text,
	`latency_ms` integer,
	`attempt_log` text NOT NULL,
	`first_attempted_at` integer,
	`last_attempted_at` integer,
	`completed_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `deliveries_by_webhook` ON `deliveries` (`webhook_id`,`id`);--> statement-breakpoint
CREATE INDEX `deliveries_by_event` ON `deliveries` (`event_id`,`webhook_id`);--> statement-breakpoint
CREATE INDEX `deliveries_due` ON `deliveries` (`webhook_id`,`next_attempt_at`) WHERE status in ('pending', 'failed') and owner is null;--> statement-breakpoint
CREATE INDEX `deliveries_leased` ON `deliveries` (`webhook_id`,`next_attempt_at`) WHERE owner is not null;--> statement-breakpoint
CREATE INDEX `deliveries_held` ON `deliveries` (`webhook_id`,`next_attempt_at`) WHERE status = 'held';--> statement-breakpoint
CREATE TABLE `webhooks` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`project_id` text NOT NULL,
	`url` text NOT NULL,
	`events` text NOT NULL,
	`description` text,
	`headers` text NOT NULL,
	`header_format` text NOT NULL,
	`retry_policy` text NOT NULL,
	`rate_limit` integer,
	`filter` text,
	`transform` text,
	`metadata` text NOT NULL,
	`version` text NOT NULL,
	`secret` text NOT NULL,
	`secret_hint` text NOT NULL,
	`previous_secret` text,
	`previous_secret_expires_at` integer,
	`status` text NOT NULL,
	`disabled_reason` text,
	`disabled_at` integer,
	`consecutive_failures` integer NOT NULL,
	`last_triggered_at` integer,
	`last_success_at` integer,
	`last_failure_at` integer,
	`next_slot_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhooks_by_project` ON `webhooks` (`project_id`,`id`);