// Every lab by the name of its Python class.
import AttentionLab from "./attention_lab.js";
import LookupLab from "./lookup_lab.js";
import MaskLab from "./mask_lab.js";
import PositionLab from "./position_lab.js";
import ScoreScaleLab from "./score_scale_lab.js";

export const labs = { AttentionLab, LookupLab, MaskLab, PositionLab, ScoreScaleLab };
