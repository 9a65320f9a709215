CREATE TABLE `template_versions` (
	`template_id` blob NOT NULL,
	`version` integer NOT NULL,
	`project_id` blob NOT NULL,
	`content` text NOT NULL,
	`note` text,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`template_id`, `version`)
);
--> statement-breakpoint
CREATE INDEX `template_versions_by_project` ON `template_versions` (`project_id`);--> statement-breakpoint
CREATE TABLE `templates` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`name` text NOT NULL,
	`description` text,
	`status` text NOT NULL,
	`version` integer NOT NULL,
	`published_version` integer,
	`tags` text NOT NULL,
	`summary` text NOT NULL,
	`search_key` text NOT NULL,
	`tag_key` text NOT NULL,
	`channel_key` text NOT NULL,
	`partial_key` text NOT NULL,
	`layout_id` blob,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`published_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `templates_by_name` ON `templates` (`project_id`,`name`);--> statement-breakpoint
CREATE INDEX `templates_by_project` ON `templates` (`project_id`,`id`);