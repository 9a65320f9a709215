CREATE TABLE `passkey_challenges` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`user_id` blob,
	`kind` text NOT NULL,
	`challenge` text NOT NULL,
	`name` text,
	`challenge_hash` text,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `passkey_challenges_by_user` ON `passkey_challenges` (`user_id`);--> statement-breakpoint
CREATE INDEX `passkey_challenges_by_expiry` ON `passkey_challenges` (`expires_at`);--> statement-breakpoint
CREATE INDEX `passkey_challenges_by_project` ON `passkey_challenges` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_backup_codes` (
	`user_id` blob NOT NULL,
	`code_hash` text NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`project_id` blob NOT NULL,
	PRIMARY KEY(`user_id`, `code_hash`)
);
--> statement-breakpoint
CREATE INDEX `user_backup_codes_by_project` ON `user_backup_codes` (`project_id`,`user_id`);--> statement-breakpoint
CREATE TABLE `user_challenges` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` blob NOT NULL,
	`attempts` integer NOT NULL,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`provider` text NOT NULL,
	`amr` text NOT NULL,
	`organization_id` blob
);
--> statement-breakpoint
CREATE INDEX `user_challenges_by_user` ON `user_challenges` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_challenges_by_expiry` ON `user_challenges` (`expires_at`);--> statement-breakpoint
CREATE INDEX `user_challenges_by_project` ON `user_challenges` (`project_id`,`token_hash`);--> statement-breakpoint
CREATE TABLE `user_factors` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`method` text NOT NULL,
	`secret` text,
	`phone_number` text,
	`last_step` integer,
	`code_hashes` text NOT NULL,
	`verified_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_factors_by_method` ON `user_factors` (`user_id`,`method`);--> statement-breakpoint
CREATE INDEX `user_factors_by_project` ON `user_factors` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `user_passkeys` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`name` text NOT NULL,
	`credential_id` text NOT NULL,
	`public_key` text NOT NULL,
	`counter` integer NOT NULL,
	`transports` text NOT NULL,
	`backed_up` integer NOT NULL,
	`last_used_at` integer,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_passkeys_by_credential` ON `user_passkeys` (`environment_id`,`credential_id`);--> statement-breakpoint
CREATE INDEX `user_passkeys_by_user` ON `user_passkeys` (`user_id`,`id`);--> statement-breakpoint
CREATE INDEX `user_passkeys_by_project` ON `user_passkeys` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `organization_invitations` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`organization_id` blob NOT NULL,
	`email` text NOT NULL,
	`email_key` text NOT NULL,
	`role` text NOT NULL,
	`accepted_at` integer,
	`revoked_at` integer,
	`expires_at` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `organization_invitations_by_organization` ON `organization_invitations` (`organization_id`,`id`);--> statement-breakpoint
CREATE INDEX `organization_invitations_by_address` ON `organization_invitations` (`organization_id`,`email_key`);--> statement-breakpoint
CREATE INDEX `organization_invitations_of_address` ON `organization_invitations` (`project_id`,`email_key`);--> statement-breakpoint
CREATE INDEX `organization_invitations_by_project` ON `organization_invitations` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `gaming_providers` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`provider` text NOT NULL,
	`enabled` integer NOT NULL,
	`bundle_ids` text NOT NULL,
	`team_id` text,
	`client_id` text,
	`client_secret` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `gaming_providers_by_name` ON `gaming_providers` (`environment_id`,`provider`);--> statement-breakpoint
CREATE INDEX `gaming_providers_by_application` ON `gaming_providers` (`application_id`,`id`);--> statement-breakpoint
CREATE INDEX `gaming_providers_by_project` ON `gaming_providers` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `oauth_flows` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`provider` text NOT NULL,
	`user_id` blob,
	`redirect_url` text NOT NULL,
	`client_state` text,
	`code_challenge` text,
	`cookie_hash` text,
	`secrets` text,
	`code_hash` text,
	`code_expires_at` integer,
	`used_at` integer,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `oauth_flows_by_code` ON `oauth_flows` (`code_hash`);--> statement-breakpoint
CREATE INDEX `oauth_flows_by_user` ON `oauth_flows` (`user_id`);--> statement-breakpoint
CREATE INDEX `oauth_flows_by_expiry` ON `oauth_flows` (`expires_at`);--> statement-breakpoint
CREATE INDEX `oauth_flows_by_project` ON `oauth_flows` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `oauth_providers` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`application_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`provider` text NOT NULL,
	`client_id` text NOT NULL,
	`client_secret` text,
	`scopes` text NOT NULL,
	`enabled` integer NOT NULL,
	`issuer` text,
	`team_id` text,
	`key_id` text,
	`private_key` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `oauth_providers_by_name` ON `oauth_providers` (`environment_id`,`provider`);--> statement-breakpoint
CREATE INDEX `oauth_providers_by_application` ON `oauth_providers` (`application_id`,`id`);--> statement-breakpoint
CREATE INDEX `oauth_providers_by_project` ON `oauth_providers` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `used_assertions` (
	`hash` text PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `used_assertions_by_expiry` ON `used_assertions` (`expires_at`);--> statement-breakpoint
CREATE INDEX `used_assertions_by_project` ON `used_assertions` (`project_id`,`hash`);--> statement-breakpoint
CREATE TABLE `user_identities` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`environment_id` blob NOT NULL,
	`user_id` blob NOT NULL,
	`provider` text NOT NULL,
	`provider_user_id` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_identities_by_account` ON `user_identities` (`environment_id`,`provider`,`provider_user_id`);--> statement-breakpoint
CREATE INDEX `user_identities_by_user` ON `user_identities` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_identities_by_project` ON `user_identities` (`project_id`,`id`);--> statement-breakpoint
DROP INDEX `memberships_by_user`;--> statement-breakpoint
CREATE INDEX `memberships_in_organization` ON `memberships` (`organization_id`,`id`);--> statement-breakpoint
CREATE INDEX `memberships_of_owners` ON `memberships` (`organization_id`) WHERE role = 'owner';--> statement-breakpoint
CREATE INDEX `memberships_by_user` ON `memberships` (`user_id`,`organization_id`);--> statement-breakpoint
ALTER TABLE `auth_environments` ADD `allowed_email_domains` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `auth_environments` ADD `passkey_rp_id` text;--> statement-breakpoint
CREATE INDEX `auth_environments_by_rp_id` ON `auth_environments` (`passkey_rp_id`,`id`);--> statement-breakpoint
ALTER TABLE `organizations` ADD `search_key` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `organizations` ADD `mfa_required` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `organizations` ADD `allowed_email_domains` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `organizations` ADD `metadata` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE `user_links` ADD `invitation_id` blob;--> statement-breakpoint
CREATE INDEX `user_links_by_invitation` ON `user_links` (`invitation_id`);--> statement-breakpoint
ALTER TABLE `user_sessions` ADD `stepped_up_at` integer;--> statement-breakpoint
ALTER TABLE `user_sessions` ADD `lacks_factor` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `mfa_methods` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `mfa_enabled_at` integer;--> statement-breakpoint
ALTER TABLE `users` ADD `identities` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
UPDATE `auth_environments` SET `passkey_rp_id` = json_extract(`settings`, '$.passkey_rp_id');--> statement-breakpoint
UPDATE `organizations` SET `search_key` = lower(`name`) || ' ' || `slug`;--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'auth_organizations', 0, count(*) FROM `organizations` GROUP BY `project_id`;--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'auth_organizations.environment_id.' || lower(substr(hex(`environment_id`), 1, 8) || '-' || substr(hex(`environment_id`), 9, 4) || '-' || substr(hex(`environment_id`), 13, 4) || '-' || substr(hex(`environment_id`), 17, 4) || '-' || substr(hex(`environment_id`), 21)), 0, count(*) FROM `organizations` GROUP BY `project_id`, `environment_id`;--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'memberships', 0, count(*) FROM `memberships` GROUP BY `project_id`;--> statement-breakpoint
INSERT INTO `counters` (`project_id`, `name`, `shard`, `value`) SELECT `project_id`, 'memberships.organization_id.' || lower(substr(hex(`organization_id`), 1, 8) || '-' || substr(hex(`organization_id`), 9, 4) || '-' || substr(hex(`organization_id`), 13, 4) || '-' || substr(hex(`organization_id`), 17, 4) || '-' || substr(hex(`organization_id`), 21)), 0, count(*) FROM `memberships` GROUP BY `project_id`, `organization_id`;
