CREATE TABLE `audit_log` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob,
	`actor` text NOT NULL,
	`actor_id` blob,
	`action` text NOT NULL,
	`target_type` text NOT NULL,
	`target_id` text,
	`ip` text,
	`before` text,
	`after` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `audit_log_by_account` ON `audit_log` (`account_id`,`id`);--> statement-breakpoint
CREATE INDEX `audit_log_by_actor` ON `audit_log` (`account_id`,`actor_id`,`id`);--> statement-breakpoint
CREATE TABLE `dkim_keys` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`domain_id` blob NOT NULL,
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
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`domain` text NOT NULL,
	`status` text NOT NULL,
	`verification_token` text NOT NULL,
	`receiving` integer NOT NULL,
	`tracking_subdomain` text,
	`return_path` text NOT NULL,
	`records` text NOT NULL,
	`provider_identity_status` text NOT NULL,
	`provider_dkim_status` text NOT NULL,
	`provider_dkim` text,
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
CREATE TABLE `events` (
	`id` blob PRIMARY KEY NOT NULL,
	`position` integer DEFAULT 0 NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`subject_id` blob,
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
	`project_id` blob NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer NOT NULL,
	`answer` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `idempotency_by_age` ON `idempotency` (`created_at`);--> statement-breakpoint
CREATE TABLE `rate_windows` (
	`name` text NOT NULL,
	`ends` integer NOT NULL,
	`given` integer NOT NULL,
	PRIMARY KEY(`name`, `ends`)
);
--> statement-breakpoint
CREATE INDEX `rate_windows_by_end` ON `rate_windows` (`ends`);--> statement-breakpoint
CREATE TABLE `account_members` (
	`account_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`role` text NOT NULL,
	`joined_at` integer NOT NULL,
	`last_active_at` integer,
	PRIMARY KEY(`account_id`, `user_id`)
);
--> statement-breakpoint
CREATE INDEX `account_members_by_user` ON `account_members` (`user_id`);--> statement-breakpoint
CREATE TABLE `accounts` (
	`id` blob PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`plan` text NOT NULL,
	`limits` text,
	`settings` text NOT NULL,
	`owner_user_id` blob,
	`status` text NOT NULL,
	`status_reason` text,
	`sending_status` text NOT NULL,
	`sending_status_reason` text,
	`deleting_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_by_slug` ON `accounts` (`slug`);--> statement-breakpoint
CREATE INDEX `accounts_by_owner` ON `accounts` (`owner_user_id`);--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`name` text NOT NULL,
	`lookup` text NOT NULL,
	`key_hash` text NOT NULL,
	`prefix` text NOT NULL,
	`last4` text NOT NULL,
	`scopes` text NOT NULL,
	`domain_id` blob,
	`ip_addresses` text NOT NULL,
	`created_by` text NOT NULL,
	`expires_at` integer,
	`last_used_at` integer,
	`last_used_ip` text,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	`successor_id` blob
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_by_lookup` ON `api_keys` (`lookup`);--> statement-breakpoint
CREATE INDEX `api_keys_by_project` ON `api_keys` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `backup_codes` (
	`user_id` blob NOT NULL,
	`code_hash` text NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `code_hash`)
);
--> statement-breakpoint
CREATE TABLE `console_sessions` (
	`id` blob PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`ip` text,
	`user_agent` text,
	`client_name` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE INDEX `console_sessions_by_user` ON `console_sessions` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `console_sessions_by_expiry` ON `console_sessions` (`expires_at`);--> statement-breakpoint
CREATE TABLE `console_users` (
	`id` blob PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`email_key` text NOT NULL,
	`name` text,
	`locale` text,
	`timezone` text,
	`password_hash` text NOT NULL,
	`operator` integer NOT NULL,
	`status` text NOT NULL,
	`mfa_secret` text,
	`mfa_pending` text,
	`mfa_pending_at` integer,
	`mfa_last_step` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`last_login_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `console_users_by_email` ON `console_users` (`email_key`);--> statement-breakpoint
CREATE TABLE `device_codes` (
	`id` blob PRIMARY KEY NOT NULL,
	`device_code_hash` text NOT NULL,
	`user_code_hash` text NOT NULL,
	`client_name` text NOT NULL,
	`ip` text,
	`status` text NOT NULL,
	`user_id` blob,
	`interval_seconds` integer NOT NULL,
	`last_polled_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `device_codes_by_device` ON `device_codes` (`device_code_hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `device_codes_by_user` ON `device_codes` (`user_code_hash`);--> statement-breakpoint
CREATE INDEX `device_codes_by_expiry` ON `device_codes` (`expires_at`);--> statement-breakpoint
CREATE TABLE `mfa_challenges` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`attempts` integer NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `mfa_challenges_by_expiry` ON `mfa_challenges` (`expires_at`);--> statement-breakpoint
CREATE TABLE `password_history` (
	`id` blob PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`password_hash` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `password_history_by_user` ON `password_history` (`user_id`,`id`);--> statement-breakpoint
CREATE TABLE `password_resets` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `password_resets_by_user` ON `password_resets` (`user_id`);--> statement-breakpoint
CREATE INDEX `password_resets_by_expiry` ON `password_resets` (`expires_at`);--> statement-breakpoint
CREATE TABLE `project_members` (
	`project_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`role` text NOT NULL,
	`added_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `user_id`)
);
--> statement-breakpoint
CREATE INDEX `project_members_by_user` ON `project_members` (`user_id`);--> statement-breakpoint
CREATE TABLE `projects` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`status` text NOT NULL,
	`settings` text NOT NULL,
	`hidden` integer NOT NULL,
	`deleting_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_by_slug` ON `projects` (`account_id`,`slug`);--> statement-breakpoint
CREATE TABLE `refresh_tokens` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`session_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer,
	`successor` text,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `refresh_tokens_by_session` ON `refresh_tokens` (`session_id`);--> statement-breakpoint
CREATE INDEX `refresh_tokens_by_expiry` ON `refresh_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `throttles` (
	`subject` text PRIMARY KEY NOT NULL,
	`used` integer NOT NULL,
	`ends_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `throttles_by_end` ON `throttles` (`ends_at`);--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` blob PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`project_id` blob,
	`payload` text NOT NULL,
	`priority` integer NOT NULL,
	`state` integer NOT NULL,
	`run_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`last_error` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `jobs_ready` ON `jobs` (`priority`,`run_at`,`id`) WHERE state = 0;--> statement-breakpoint
CREATE INDEX `jobs_leased` ON `jobs` (`lease_until`) WHERE state = 1;--> statement-breakpoint
CREATE INDEX `jobs_dead` ON `jobs` (`run_at`) WHERE state = 2;--> statement-breakpoint
CREATE INDEX `jobs_held` ON `jobs` (`owner`,`id`) WHERE state = 3;--> statement-breakpoint
CREATE TABLE `long_jobs` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`type` text NOT NULL,
	`status` text NOT NULL,
	`total` integer NOT NULL,
	`done` integer NOT NULL,
	`failed` integer NOT NULL,
	`result` text,
	`error` text,
	`created_at` integer NOT NULL,
	`completed_at` integer
);
--> statement-breakpoint
CREATE INDEX `long_jobs_by_project` ON `long_jobs` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `long_jobs_by_end` ON `long_jobs` (`completed_at`);--> statement-breakpoint
CREATE TABLE `nodes` (
	`id` blob PRIMARY KEY NOT NULL,
	`seen_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `paused_queues` (
	`queue` text PRIMARY KEY NOT NULL,
	`paused_by` text,
	`paused_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `mailbox_mails` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`account_id` blob NOT NULL,
	`email_id` blob,
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
	`mail_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`address` text NOT NULL,
	PRIMARY KEY(`mail_id`, `address`),
	FOREIGN KEY (`mail_id`) REFERENCES `mailbox_mails`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `mailbox_recipients_by_address` ON `mailbox_recipients` (`project_id`,`address`,`mail_id`);--> statement-breakpoint
CREATE TABLE `attempts` (
	`message_id` blob NOT NULL,
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
	`message_id` blob PRIMARY KEY NOT NULL,
	`content` text NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `message_raws` (
	`message_id` blob PRIMARY KEY NOT NULL,
	`raw` blob NOT NULL,
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `message_tags` (
	`project_id` blob NOT NULL,
	`tag` text NOT NULL,
	`message_id` blob NOT NULL,
	PRIMARY KEY(`project_id`, `tag`, `message_id`)
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
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
	`batch_id` blob,
	`stream` text NOT NULL,
	`source` text NOT NULL,
	`tags` text NOT NULL,
	`metadata` text NOT NULL,
	`api_key_id` blob,
	`idempotency_key` text,
	`rfc_message_id` text,
	`sandbox` integer NOT NULL,
	`provider` text,
	`priority` integer NOT NULL,
	`state` integer NOT NULL,
	`run_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`error` text,
	`last_event_type` text,
	`last_event_at` integer,
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
CREATE INDEX `messages_ready` ON `messages` (`priority`,`run_at`,`id`) WHERE state = 0;--> statement-breakpoint
CREATE INDEX `messages_leased` ON `messages` (`lease_until`) WHERE state = 1;--> statement-breakpoint
CREATE INDEX `messages_dead` ON `messages` (`run_at`) WHERE state = 2;--> statement-breakpoint
CREATE INDEX `messages_held` ON `messages` (`owner`,`id`) WHERE state = 3;--> statement-breakpoint
CREATE TABLE `quotas` (
	`subject` text NOT NULL,
	`period` text NOT NULL,
	`metric` text NOT NULL,
	`used` integer NOT NULL,
	`alerted` integer NOT NULL,
	PRIMARY KEY(`subject`, `period`, `metric`)
);
--> statement-breakpoint
CREATE TABLE `send_buckets` (
	`project_id` blob NOT NULL,
	`channel` text NOT NULL,
	`drained` integer NOT NULL,
	PRIMARY KEY(`project_id`, `channel`)
);
--> statement-breakpoint
CREATE TABLE `provider_configs` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`kind` text NOT NULL,
	`provider` text NOT NULL,
	`name` text NOT NULL,
	`priority` integer NOT NULL,
	`enabled` integer NOT NULL,
	`status` text NOT NULL,
	`last_error` text,
	`trouble_since` integer,
	`paused_until` integer,
	`probe_message_id` blob,
	`credentials` text,
	`settings` text NOT NULL,
	`callback_token_hash` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `provider_configs_by_name` ON `provider_configs` (`project_id`,`kind`,`provider`,`name`);--> statement-breakpoint
CREATE UNIQUE INDEX `provider_configs_by_callback` ON `provider_configs` (`callback_token_hash`);--> statement-breakpoint
CREATE INDEX `provider_configs_in_trouble` ON `provider_configs` (`id`) WHERE status = 'error';--> statement-breakpoint
CREATE TABLE `provider_receipts` (
	`config_id` blob NOT NULL,
	`provider_message_id` text NOT NULL,
	`project_id` blob NOT NULL,
	`message_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`config_id`, `provider_message_id`)
);
--> statement-breakpoint
CREATE INDEX `provider_receipts_by_message` ON `provider_receipts` (`message_id`);--> statement-breakpoint
CREATE TABLE `request_log` (
	`id` blob PRIMARY KEY NOT NULL,
	`request_id` text NOT NULL,
	`project_id` blob,
	`key_id` blob,
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
CREATE TABLE `counters` (
	`project_id` blob NOT NULL,
	`name` text NOT NULL,
	`shard` integer NOT NULL,
	`value` integer NOT NULL,
	PRIMARY KEY(`project_id`, `name`, `shard`)
);
--> statement-breakpoint
CREATE TABLE `instance_values` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `invitations` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`email` text NOT NULL,
	`email_key` text NOT NULL,
	`role` text NOT NULL,
	`projects` text NOT NULL,
	`token_hash` text NOT NULL,
	`status` text NOT NULL,
	`expires_at` integer NOT NULL,
	`invited_by` blob,
	`created_at` integer NOT NULL,
	`accepted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invitations_by_token` ON `invitations` (`token_hash`);--> statement-breakpoint
CREATE INDEX `invitations_by_account` ON `invitations` (`account_id`,`id`);--> statement-breakpoint
CREATE TABLE `usage_days` (
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`day` text NOT NULL,
	`metric` text NOT NULL,
	`shard` integer NOT NULL,
	`value` integer NOT NULL,
	PRIMARY KEY(`account_id`, `day`, `project_id`, `metric`, `shard`)
);
--> statement-breakpoint
CREATE INDEX `usage_days_by_project` ON `usage_days` (`project_id`,`day`);--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`webhook_id` blob NOT NULL,
	`event_id` blob NOT NULL,
	`event_type` text NOT NULL,
	`trigger` text NOT NULL,
	`status` text NOT NULL,
	`state` integer NOT NULL,
	`run_at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`owner` text,
	`lease_until` integer,
	`attempts` integer NOT NULL,
	`max_attempts` integer NOT NULL,
	`by_hand` integer NOT NULL,
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
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_webhook` ON `webhook_deliveries` (`webhook_id`,`id`);--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_event` ON `webhook_deliveries` (`event_id`,`webhook_id`);--> statement-breakpoint
CREATE INDEX `webhook_deliveries_ready` ON `webhook_deliveries` (`webhook_id`,`run_at`,`id`) WHERE state = 0;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_leased` ON `webhook_deliveries` (`lease_until`) WHERE state = 1;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_dead` ON `webhook_deliveries` (`run_at`) WHERE state = 2;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_held` ON `webhook_deliveries` (`webhook_id`,`run_at`) WHERE state = 3;--> statement-breakpoint
CREATE TABLE `webhooks` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`url` text NOT NULL,
	`events` text NOT NULL,
	`description` text,
	`headers` text NOT NULL,
	`sealed_headers` text,
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
	`unresolved_at` integer,
	`next_slot_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `webhooks_by_project` ON `webhooks` (`project_id`,`id`);