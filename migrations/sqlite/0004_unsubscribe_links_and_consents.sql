CREATE TABLE `consents` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob,
	`address` text,
	`number` integer NOT NULL,
	`channel` text NOT NULL,
	`scope_type` text,
	`scope_key` text,
	`action` text NOT NULL,
	`source` text NOT NULL,
	`proof` text,
	`ip_hash` text,
	`created_at` integer NOT NULL,
	`prev_hash` text,
	`hash` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `consents_by_address` ON `consents` (`project_id`,`address`,`number`);--> statement-breakpoint
CREATE INDEX `consents_by_project` ON `consents` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `unsubscribe_links` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`address` text NOT NULL,
	`scope_type` text NOT NULL,
	`scope_key` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `unsubscribe_links_by_address` ON `unsubscribe_links` (`project_id`,`address`,`id`);