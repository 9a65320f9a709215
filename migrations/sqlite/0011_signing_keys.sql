CREATE TABLE `signing_keys` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`use` text NOT NULL,
	`public_key` text NOT NULL,
	`private_key` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `signing_keys_by_project` ON `signing_keys` (`project_id`,`id`);