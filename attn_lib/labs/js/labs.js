// Every lab by the name of its Python class.
import AttentionLab from "./attention_lab.js";
import MaskLab from "./mask_lab.js";
import ScoreScaleLab from "./score_scale_lab.js";

export const labs = { AttentionLab, MaskLab, ScoreScaleLab };
