CREATE TABLE `consent_heads` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`sealed` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `consent_heads_by_project` ON `consent_heads` (`project_id`,`id`);