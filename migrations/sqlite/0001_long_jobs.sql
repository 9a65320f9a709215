CREATE TABLE `long_jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
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
ALTER TABLE `api_keys` ADD `successor_id` text;