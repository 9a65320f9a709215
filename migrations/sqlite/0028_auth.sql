CREATE TABLE `application_keys` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment` text,
	`name` text NOT NULL,
	`key` text NOT NULL,
	`last_used_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `application_keys_by_key` ON `application_keys` (`key`);--> statement-breakpoint
CREATE INDEX `application_keys_by_application` ON `application_keys` (`application_id`,`id`);--> statement-breakpoint
CREATE INDEX `application_keys_by_project` ON `application_keys` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `applications` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`account_id` blob NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`type` text NOT NULL,
	`logo_url` text,
	`session_duration_minutes` integer NOT NULL,
	`refresh_token_duration_days` integer NOT NULL,
	`allowed_origins` text NOT NULL,
	`redirect_urls` text NOT NULL,
	`secret_hash` text NOT NULL,
	`previous_secret_hash` text,
	`previous_expires_at` integer,
	`deleting_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `applications_by_slug` ON `applications` (`project_id`,`slug`);--> statement-breakpoint
CREATE INDEX `applications_by_project` ON `applications` (`project_id`,`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `applications_by_secret` ON `applications` (`secret_hash`);--> statement-breakpoint
CREATE INDEX `applications_by_previous_secret` ON `applications` (`previous_secret_hash`);--> statement-breakpoint
CREATE TABLE `auth_environments` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`name` text NOT NULL,
	`settings` text NOT NULL,
	`captcha_secret` text,
	`default_organization_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `auth_environments_by_name` ON `auth_environments` (`application_id`,`name`);--> statement-breakpoint
CREATE INDEX `auth_environments_by_project` ON `auth_environments` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `memberships` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`organization_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`role` text NOT NULL,
	`permissions` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `memberships_by_organization` ON `memberships` (`organization_id`,`user_id`);--> statement-breakpoint
CREATE INDEX `memberships_by_user` ON `memberships` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `memberships_by_project` ON `memberships` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `organizations_by_slug` ON `organizations` (`environment_id`,`slug`);--> statement-breakpoint
CREATE INDEX `organizations_by_environment` ON `organizations` (`environment_id`,`id`);--> statement-breakpoint
CREATE INDEX `organizations_by_project` ON `organizations` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_codes` (
	`id` blob PRIMARY KEY NOT NULL,
	`code_hash` text NOT NULL,
	`attempts` integer NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`purpose` text NOT NULL,
	`identifier` text NOT NULL,
	`user_id` blob,
	`message_id` blob
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_codes_by_identifier` ON `user_codes` (`environment_id`,`identifier`,`purpose`);--> statement-breakpoint
CREATE INDEX `user_codes_by_user` ON `user_codes` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_codes_by_expiry` ON `user_codes` (`expires_at`);--> statement-breakpoint
CREATE INDEX `user_codes_by_project` ON `user_codes` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_links` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`kind` text NOT NULL,
	`user_id` blob,
	`email` text NOT NULL,
	`redirect_url` text,
	`purpose` text,
	`message_id` blob
);
--> statement-breakpoint
CREATE INDEX `user_links_by_user` ON `user_links` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_links_by_expiry` ON `user_links` (`expires_at`);--> statement-breakpoint
CREATE INDEX `user_links_by_project` ON `user_links` (`project_id`,`token_hash`);--> statement-breakpoint
CREATE TABLE `user_password_history` (
	`id` blob PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`password_hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`project_id` blob NOT NULL
);
--> statement-breakpoint
CREATE INDEX `user_password_history_by_user` ON `user_password_history` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `user_password_history_by_project` ON `user_password_history` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_refresh_tokens` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`session_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer,
	`successor` text,
	`expires_at` integer NOT NULL,
	`project_id` blob NOT NULL
);
--> statement-breakpoint
CREATE INDEX `user_refresh_tokens_by_session` ON `user_refresh_tokens` (`session_id`);--> statement-breakpoint
CREATE INDEX `user_refresh_tokens_by_expiry` ON `user_refresh_tokens` (`expires_at`);--> statement-breakpoint
CREATE INDEX `user_refresh_tokens_by_project` ON `user_refresh_tokens` (`project_id`,`token_hash`);--> statement-breakpoint
CREATE TABLE `user_sessions` (
	`id` blob PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`ip` text,
	`user_agent` text,
	`created_at` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`organization_id` blob NOT NULL,
	`amr` text NOT NULL,
	`auth_time` integer NOT NULL,
	`act` text
);
--> statement-breakpoint
CREATE INDEX `user_sessions_by_user` ON `user_sessions` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `user_sessions_open` ON `user_sessions` (`user_id`,`revoked_at`,`id`);--> statement-breakpoint
CREATE INDEX `user_sessions_by_expiry` ON `user_sessions` (`expires_at`);--> statement-breakpoint
CREATE INDEX `user_sessions_by_project` ON `user_sessions` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_throttles` (
	`subject` text PRIMARY KEY NOT NULL,
	`used` integer NOT NULL,
	`ends_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `user_throttles_by_end` ON `user_throttles` (`ends_at`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`environment` text NOT NULL,
	`email` text,
	`email_key` text,
	`email_verified` integer NOT NULL,
	`phone_number` text,
	`phone_verified` integer NOT NULL,
	`name` text,
	`search_key` text NOT NULL,
	`avatar_url` text,
	`locale` text,
	`metadata` text NOT NULL,
	`app_metadata` text NOT NULL,
	`status` text NOT NULL,
	`status_reason` text,
	`password_hash` text,
	`is_anonymous` integer NOT NULL,
	`anonymous_device_id` text,
	`subscriber_id` blob,
	`last_organization_id` blob,
	`first_activity_at` integer,
	`last_login_at` integer,
	`active_month` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_by_email` ON `users` (`environment_id`,`email_key`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_by_phone` ON `users` (`environment_id`,`phone_number`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_by_device` ON `users` (`environment_id`,`anonymous_device_id`);--> statement-breakpoint
CREATE INDEX `users_by_environment` ON `users` (`environment_id`,`id`);--> statement-breakpoint
CREATE INDEX `users_by_status` ON `users` (`environment_id`,`status`,`id`);--> statement-breakpoint
CREATE INDEX `users_by_project` ON `users` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `users_of_address` ON `users` (`project_id`,`email_key`);--> statement-breakpoint
CREATE INDEX `users_of_phone` ON `users` (`project_id`,`phone_number`);--> statement-breakpoint
CREATE INDEX `users_of_subscriber` ON `users` (`project_id`,`subscriber_id`);--> statement-breakpoint
ALTER TABLE `inbox_tickets` ADD `session_id` blob;--> statement-breakpoint
ALTER TABLE `signing_keys` ADD `application_id` blob;--> statement-breakpoint
CREATE INDEX `signing_keys_by_application` ON `signing_keys` (`application_id`,`id`);