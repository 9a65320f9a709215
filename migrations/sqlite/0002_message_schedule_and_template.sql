ALTER TABLE `messages` ADD `scheduled_at` integer;--> statement-breakpoint
ALTER TABLE `messages` ADD `template_id` blob;--> statement-breakpoint
CREATE INDEX `messages_scheduled` ON `messages` (`project_id`,`id`) WHERE scheduled_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `messages_by_template` ON `messages` (`project_id`,`template_id`,`id`) WHERE template_id IS NOT NULL;