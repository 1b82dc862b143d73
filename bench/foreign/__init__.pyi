from .audit import attack_folder as attack_folder
